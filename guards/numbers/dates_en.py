# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""English dates, weekdays and clock times: patterns and what each states.

A row is (pattern, reader); the first row that takes a stretch of text keeps it. Words that are also other words
(may, march, sat, second) count only with a neighbour that shows the date.
"""

from __future__ import annotations

from seatrial.guards.numbers.blocks import (
    at_number,
    row,
    table,
)
from seatrial.guards.numbers.read_clock_en import (
    read_clock,
    read_clock_before,
    read_clock_of_day,
    read_compact_clock,
    read_hour,
    read_hour_of_range,
    read_noon,
    read_past,
)
from seatrial.guards.numbers.read_dates_en import (
    BARE_YEAR,
    FEASTS,
    RELATIVE,
    YEAR_RANGE,
    YEAR_RANGE_END,
    read_after_next,
    read_bare_year,
    read_century,
    read_date,
    read_day_of_month,
    read_early,
    read_feast,
    read_month_alone,
    read_next_periods,
    read_numeric,
    read_ordinal_period,
    read_part_of_day,
    read_part_of_period,
    read_period,
    read_quarter,
    read_relative,
    read_shifted,
    read_short_quarter,
    read_week_number,
    read_weekday,
    read_weekday_and_day,
    read_weekday_of_week,
)
from seatrial.guards.numbers.words_en import (
    COUNT,
    DAY_OF_MONTH,
    DAY_WORD,
    DAYS,
    MODIFIER,
    MONTH,
    MONTH_NAMES,
    ORDINALS,
    PERIOD,
    TEENS,
    TENS,
    UNITS,
    WORD_NUMBER,
    YEAR,
)

_HALF_DAY = r"(?P<half>[ap] ?\.? ?m\b\.?|(?<=\d)[ap](?![a-z]))"
_MINUTE_WORDS = rf"oh (?:{UNITS})|(?:{TENS})(?:[- ](?:{UNITS}))?|{TEENS}"
_WEEKDAY = "(?P<wd>" + "|".join([*(d + "s?" for d in DAYS), r"mon|tues?|weds?|thurs?|thu|fri|sat|sun"]) + ")"
# A number, and the sign or the first letter of the word that makes it part of a date or a time; or a date in eight
# digits.
_LIKELY = r"\d+ ?[-/.:–aptu]|\d{8}"
ENGLISH = table(
    at_number(
        "digit",
        r"(?<![a-z0-9_./])(?<!(?<!\d\d)\d-)(?P<y>\d{4})(?P<by>[-/.])(?P<m>\d{1,2})(?P=by)(?P<d>\d{1,2})(?!\d)(?!\.\d)",
        read_numeric,
    ),
    at_number(
        "year",
        r"(?<![a-z0-9_./])(?P<y>19\d\d|20\d\d)(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])(?![\d.,%])",
        read_numeric,
    ),
    at_number(
        "month year", rf"(?<![a-z0-9_])(?P<y>(?:19|20)\d\d)-{MONTH}-(?P<d>\d{{1,2}})(?![a-z0-9_])", read_date
    ),
    at_number(
        "month year", rf"(?<![a-z0-9_])(?P<d>\d{{1,2}})-{MONTH}-(?P<y>(?:19|20)\d\d)(?![a-z0-9_])", read_date
    ),
    row("month year", rf"\b{MONTH}-(?P<d>\d{{1,2}})-(?P<y>(?:19|20)\d\d)(?![a-z0-9_])", read_date),
    row("month", rf"\b{MONTH}[ /-](?:the )?{DAY_OF_MONTH}(?: ?,? ?(?:of )?{YEAR})?(?![a-z0-9_])", read_date),
    row(
        "month",
        rf"(?<![a-z0-9_.])(?:the )?{DAY_OF_MONTH}(?: day)?(?: of)?[ -/]{MONTH}(?:[,. -]{{0,2}}{YEAR})?(?![a-z0-9_])",
        read_date,
    ),
    row(
        "month",
        rf"\b{MONTH} (?P<d>{WORD_NUMBER})(?:,? {YEAR})?(?![a-z0-9_])(?![ -](?:hundred|thousand|million|percent|{UNITS}))",
        read_date,
    ),
    row(
        "month", rf"\b(?P<d>{WORD_NUMBER}) (?:of )?(?!may|march){MONTH}(?:,? {YEAR})?(?![a-z0-9_])", read_date
    ),
    row("month", rf"\b{MONTH},? ?(?:of |in )?(?:the year )?{YEAR}(?![a-z0-9_])", read_date),
    row(
        "half",
        r"(?<![a-z0-9_.])(?P<q>first|second|third|fourth|1st|2nd|3rd|4th)[ -](?:fiscal |calendar )?(?P<unit>quarter|half)"
        r"(?: of the year)?(?![a-z0-9_])(?! (?:an? )?(?:hour|mile|million|dozen))",
        read_quarter,
    ),
    row(
        "half digit",
        r"(?<![a-z0-9_.])(?:(?P<a>[qh])(?P<n>[1-4])|(?P<n2>[1-4])(?P<b>[qh]))(?:[ -]?(?:fy ?)?(?P<fy>20\d\d|'?\d\d(?![\d%.,])))?(?![a-z0-9_])",
        read_short_quarter,
    ),
    row("century digit", r"(?<![a-z0-9_.])(?:the )?(\d{1,2})(?:st|nd|rd|th) {1,2}century\b", read_century),
    row("century", rf"\b({DAY_WORD}) century\b", read_century),
    row(
        "year",
        r"(?<![a-z0-9_.])(?:the )?(?P<dec>(?:1[5-9]|20)\d0)'?s\b",
        lambda found: {"dec": int(found["dec"])},
    ),
    row(
        "week digit",
        r"\bweek (\d{1,2})(?: of (?P<y>(?:19|20)\d\d))?(?![\d%]|[.:]\d| ?[ap]\.?m)",
        read_week_number,
    ),
    row(
        "period",
        rf"\b(?:the )?(?P<n>\d{{1,2}}(?:st|nd|rd|th)|{ORDINALS}|last) (?P<unit>week|month) (?:of|in)(?= )",
        read_ordinal_period,
    ),
    row("period", rf"\b(?:the )?(?P<unit>{PERIOD}) after next\b", read_after_next),
    row("period", rf"\b(?P<which>{MODIFIER}) {COUNT} (?P<unit>{PERIOD})s?\b", read_next_periods),
    row(
        "period",
        rf"\b{COUNT} (?P<which>next|past|coming|last|previous|following) (?P<unit>{PERIOD})s\b",
        read_next_periods,
    ),
    row(
        "period",
        rf"\b{COUNT} (?P<unit>{PERIOD})s? (?P<way>ago|later|from|after|before|hence|earlier|back)"
        rf"(?: (?P<anchor>today|now|tomorrow|tmrw|yesterday))?(?! (?:the|that|this|a|his|her|i|we|they|it)\b)\b",
        read_shifted,
    ),
    row(
        "period",
        rf"\b(?:with)?in (?:the next |next )?{COUNT} (?P<unit>{PERIOD})s?(?:' time)?\b",
        read_shifted,
    ),
    row(
        "relative",
        "|".join(rf"\b{word}\b" for word in sorted(RELATIVE, key=len, reverse=True)),
        read_relative,
    ),
    row(
        "weekday week",
        rf"\b{_WEEKDAY} (?:of )?(?:the )?(?P<which>next|following|this|last|coming) week\b",
        read_weekday_of_week,
    ),
    row(
        "weekday",
        rf"\b{_WEEKDAY}\.?,? (?:the )?(?P<d>\d{{1,2}}(?:st|nd|rd|th)|(?:the )?{DAY_WORD}|\d\d(?=[.,;!?]?(?:\s|$)))(?![:/%-]|[.,]\d)",
        read_weekday_and_day,
    ),
    row(
        "weekday", rf"\b(?:(?P<which>{MODIFIER}) (?:week(?: on)? |week's )?)?{_WEEKDAY}\b(?!')", read_weekday
    ),
    row("period", rf"\b(?P<which>{MODIFIER}) (?P<unit>{PERIOD})\b", read_period),
    row("weekend", r"\b(?:the |over the |at the )?weekend\b", lambda _: {"we": 1}),
    row(
        "early",
        rf"\b(?:the )?(?P<part>early|mid|late|beginning of|start of|middle of|end of)[ -](?:the )?"
        rf"(?=(?:19|20)\d\d|{'|'.join(MONTH_NAMES)}|(?:this|next|last) (?:year|month))",
        read_early,
    ),
    row(
        "early period",
        r"\b(?:the )?(?P<part>end|beginning|start|middle) of (?:the )?(?P<unit>year|quarter|month|week)\b",
        read_part_of_period,
    ),
    row(
        "dayparts",
        rf"(?<![a-z0-9_.:/$€£-])(?P<hour>\d{{1,2}}|{WORD_NUMBER})(?:[:.](?P<minute>[0-5]\d))?(?: o'? ?clock)? (?:in the|at)"
        r" (?P<half>morning|afternoon|evening|night)\b",
        read_clock_of_day,
    ),
    at_number(
        "halfday digit",
        r"(?<![a-z0-9_.:/-])(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?"
        r"(?= ?(?:-|–|to|and|till|until) ?(?P<second>\d{1,2})(?:[:.]\d\d)? ?(?P<half>[ap]) ?\.? ?m\b)",
        read_clock_before,
    ),
    at_number(
        "halfday digit",
        rf"(?<![a-z0-9_.:])(?P<hour>\d{{1,2}})(?:[:.](?P<minute>\d\d))?(?::\d\d)? ?{_HALF_DAY}",
        read_clock,
    ),
    at_number(
        "digit",
        r"(?<![a-z0-9_.:/$€£-])(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?= ?(?:-|–|to|and|till) ?\d{1,2}(?::\d\d|[.,;!?]?(?:\s|$)))",
        read_hour_of_range,
    ),
    at_number(
        "halfday digit",
        r"(?<![a-z0-9_.:])(?P<hour>\d{1,2})(?P<minute>\d\d) ?(?P<half>[ap] ?\.? ?m\b\.?)",
        read_compact_clock,
    ),
    row(
        "past",
        rf"\b(?P<part>half|(?:a )?quarter|twenty[- ]five|twenty|ten|five|\d{{1,2}}) (?P<way>past|to|after|of) "
        rf"(?P<hour>{WORD_NUMBER}|\d{{1,2}})\b(?: ?o ?'? ?clock)?(?! (?:percent|million|thousand|hundred|of))",
        read_past,
    ),
    row("noon", r"\b(?:12 )?(?P<word>noon|midday|midnight)\b", read_noon),
    row(
        "at",
        r"(?:(?<=\bat )|(?<=\baround ))(?P<hour>\d{1,2})(?:\.(?P<minute>[0-5]\d))?"
        r"(?=[.,;!?)]?(?:\s|$))(?! ?(?:%|percent|[a-z]{3,}s\b|million|thousand|per\b|year|month|euro|dollar|usd|eur))",
        read_hour,
    ),
    row(
        "fifteen",
        rf"\b(?P<hour>{UNITS}|ten|eleven|twelve) (?P<minute>fifteen|thirty(?:[- ](?:{UNITS}))?|forty[- ]five)"
        r"(?=[.,;!?]|$| (?:so|in|on|at|to|and|or|tomorrow|today|tonight|sharp|same|until|till)\b)",
        read_clock,
    ),
    row(
        "fifteen",
        rf"(?:(?<=\bat )|(?<=\bfrom )|(?<=\bto )|(?<=\btill )|(?<=\buntil )|(?<=\baround )|(?<=eenth )|(?<=ieth ))"
        rf"(?P<hour>{UNITS}|ten|eleven|twelve) (?P<minute>fifteen|twenty|thirty|forty[- ]five|forty|fifty)\b(?! (?:[a-z]+ )?[a-z]+s\b)",
        read_clock,
    ),
    row(
        "clock", rf"(?<![a-z0-9_.:])(?P<hour>\d{{1,2}}|{WORD_NUMBER}) ?(?P<minute>)o ?'? ?clock\b", read_clock
    ),
    row(
        "halfday",
        rf"\b(?P<hour>{WORD_NUMBER})(?:[ -](?P<minute>{_MINUTE_WORDS}))? ?(?P<half>[ap] ?\.? ?m\b\.?)",
        read_clock,
    ),
    at_number(
        "colon",
        r"(?<![a-z0-9_.:])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<sec>[0-5]\d))?(?![\d:%])(?!\.\d)",
        read_clock,
    ),
    row(
        "dayparts",
        r"(?:(?:\b(?P<this>this )|\bin (?:the )?|\bat |(?<=day )|(?<=morrow )|(?<=th )|(?<=\blast )|(?<=\bnext ))"
        r"(?P<dp>morning|afternoon|evening|night))s?\b",
        read_part_of_day,
    ),
    row("feast", "|".join(rf"\b{name}\b" for name in sorted(FEASTS, key=len, reverse=True)), read_feast),
    row("month", rf"\b{MONTH}(?![a-z0-9_])", read_month_alone),
    row(
        "nth",
        rf"(?<=\bon )the (?P<d>\d{{1,2}}(?:st|nd|rd|th)|{DAY_WORD})\b(?! [a-z]*(?:floor|day|time|place|century|quarter|half|of))",
        read_day_of_month,
    ),
    row(
        "nth",
        rf"\b(?:the )?(?P<d>\d{{1,2}}(?:st|nd|rd|th)|{DAY_WORD})(?: day)?(?= (?:of )?(?:this|next|last|the) month\b)",
        read_day_of_month,
    ),
    row(
        "nth period",
        r"(?:\b(?:by|until|till|around|since|from|before|after) )the (?P<d>\d{1,2}(?:st|nd|rd|th))\b(?! [a-z]{3,})",
        read_day_of_month,
    ),
    likely=_LIKELY,
)
# Bare years come after dates in digits.
YEARS = table(
    row("year", YEAR_RANGE.pattern, lambda found: {"y": int(found[0])}),
    row("year", YEAR_RANGE_END.pattern, lambda found: {"y": int(found[0])}),
    row("year", BARE_YEAR.pattern, read_bare_year),
    likely="",
)
