"""Names of a summary against its source, in English and Chinese, each with a reason.

`find_names` is a pure function from text to mentions with exact spans, `check_names` the guard,
`tag_entities` the classes person, organisation and place for those who count by class. Importing this loads
no tagger.
"""

from seatrial.guards.names.check import check_names, find_names, tag_entities
from seatrial.guards.names.model import Entity, NameMention
from seatrial.guards.names.policy import SEVERITY, Reason

__all__ = ["SEVERITY", "Entity", "NameMention", "Reason", "check_names", "find_names", "tag_entities"]
