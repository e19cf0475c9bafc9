"""Numbers in English and Chinese text: find them with exact spans, normalize them, compare them."""

from seatrial.guards.numbers.extract import extract_quantities
from seatrial.guards.numbers.quantity import Quantity
from seatrial.guards.numbers.report import check_numbers

__all__ = ["Quantity", "check_numbers", "extract_quantities"]
