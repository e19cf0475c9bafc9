"""The samples are what they claim to be: long and rich enough, whole in the package, truthfully labelled."""

import re
import tomllib
from collections import Counter
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path

import pytest

from seatrial.errors import UserError
from seatrial.samples import (
    LANGUAGES,
    MEETING_DATE,
    planted_errors,
    sample_path,
    sample_text,
    summary_path,
    summary_text,
)

LABEL = re.compile(r"^(?:\[(\d\d):(\d\d):(\d\d)\] )?([^:：\d\n]{2,30})(?:：|: )", re.M)

ZH_DIGITS = "零一二三四五六七八九十百千万亿两半"
EN_NUMBER_WORD = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|half)"
)
FIGURE = {
    # A run of words is one figure; a lone small word ("two of them") is not counted as one.
    "en": rf"\d[\d.,:]*|\b{EN_NUMBER_WORD}(?:[ -](?:and )?{EN_NUMBER_WORD})+\b",
    "zh": rf"\d(?:[\d.]| (?=\d))*|[{ZH_DIGITS}]{{2,}}(?:点[{ZH_DIGITS}]+)?",
}

KINDS = {
    "en": {
        "dollars in digits": r"\$1\.24 million",
        "dollars in words": r"two point one five million",
        "euros in digits": r"€310,000",
        "euros in words": r"twenty-three thousand four hundred euros",
        "corrected amount": r"1\.42 million dollars\. Sorry",
        "corrected in words": r"eighty, no, let me say eighty-five thousand",
        "half a million": r"half a million",
        "percent": r"41\.5 percent",
        "percentage points": r"one point eight percentage points",
        "basis points": r"35 basis points",
        "quarter": r"\bQ1\b",
        "year in words": r"twenty nineteen",
        "ordinal date": r"twelfth of March",
        "short date": r"April 3rd",
        "relative date": r"next Wednesday",
        "clock time": r"quarter past two",
        "duration": r"three hours and thirty-five minutes",
        "range": r"6 to 8 weeks",
        "range in words": r"six or seven thousand",
        "ratio": r"sixty forty",
        "fraction": r"two thirds",
        "one in": r"one in a thousand",
        "extension": r"extension 4417",
        "version": r"\b3\.11\b",
        "lot code": r"B-2207",
        "room": r"room 214",
        "negative": r"minus 20 degrees",
        "tolerance": r"plus or minus one",
        "measure": r"18 square metres",
        "approximation": r"[Rr]oughly three hundred",
        "just under": r"just under twenty thousand",
    },
    "zh": {
        "亿 in digits": r"1\.2亿",
        "万 in digits": r"6200万",
        "万 in words": r"五千四百万",
        "clipped amount": r"三十七万五",
        "corrected amount": r"37\.5万，呃，不对，是35\.7万",
        "corrected in words": r"四千八百三，啊不对",
        "price in words": r"一百四十二块五",
        "cents": r"四毛七",
        "percent in words": r"百分之三十八点六",
        "percent in digits": r"30%",
        "percentage points": r"1\.4个百分点",
        "per mille": r"千分之八",
        "per ten thousand": r"万分之五",
        "basis points": r"十五个基点",
        "tenths": r"六成",
        "split": r"七三开",
        "ratio": r"三比一",
        "fraction": r"三分之一",
        "date": r"四月十六号",
        "relative date": r"下周三",
        "relative month": r"本月底",
        "quarter": r"一季度",
        "clock time": r"上午九点半",
        "time of day": r"八点十分断到十一点二十五",
        "duration": r"六小时二十分钟",
        "range": r"20到30台",
        "adjacent numerals": r"两三个",
        "approximation": r"三百多个点",
        "近": r"近两千亩",
        "spaced digits": r"1 8 9 台",
        "extension": r"分机号是8032，其实是 8 0 2 3",
        "version": r"V2\.4\.3",
        "batch code": r"Q2-0317",
        "room": r"306会议室|306 会议室",
        "ordinal": r"第四个",
        "negative": r"零下二十五度",
        "outflow": r"净流出二百一十万",
        "tolerance": r"正负零点三度",
        "decimal in words": r"零点三毫安时",
        "measure": r"54平米",
        "multiple": r"三倍",
    },
}

TITLES = {
    "en": [
        "managing director",
        "chief financial officer",
        "Dr. ",
        "operations manager",
        "head of sales",
        "support",
    ]
    + ["product manager", "general counsel", "Professor ", "Mr. Abernethy"],
    "zh": [
        "张总",
        "欧阳总监",
        "王经理",
        "李工",
        "赵主任",
        "陈经理",
        "周博士",
        "何律师",
        "马场长",
        "胡科长",
        "吴总",
    ],
}

NOISE = {
    "en": {
        "fillers": (r"\b[Uu][hm]\b", 30),
        "repeated words": (r"\b([a-z]+) \1\b", 8),
        "lower-case starts": (r"(?m)^[^:]+: [a-z]", 10),
        "no full stop": (r"(?m)\w$", 8),
        "homophones": (r"there the worst|every single sell|the hole lot", 3),
    },
    "zh": {
        "fillers": (r"嗯|那个|就是说", 25),
        "repeated words": (r"这个这个|就是就是|五天，五天|两天的事儿|也就是，也就", 3),
        "no full stop": (r"(?m)\w$", 6),
        "homophones": (r"翻修率|法门|汇款|磨具|样鸡|公单", 6),
    },
}


def spoken(language: str) -> str:
    """The transcript without its labels and times."""
    return LABEL.sub("", sample_text(language))


def speakers(language: str) -> Counter[str]:
    return Counter(match[4] for match in LABEL.finditer(sample_text(language)))


def test_english_is_about_3500_words_long():
    assert 3400 <= len(spoken("en").split()) <= 3650


def test_chinese_is_about_6000_characters_long():
    assert 5800 <= len(re.sub(r"\s", "", spoken("zh"))) <= 6300


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_is_a_turn_of_a_labelled_speaker(language):
    lines = sample_text(language).splitlines()
    unlabelled = [line for line in lines if not LABEL.match(line)]
    assert len(lines) > 100
    assert unlabelled == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_at_least_eight_people_speak_more_than_once_and_bear_titles(language):
    assert len([name for name, turns in speakers(language).items() if turns > 1]) >= 8
    assert [title for title in TITLES[language] if title not in sample_text(language)] == []


def test_colons_of_the_labels_are_full_width_in_chinese_only():
    assert all(LABEL.match(line)[0].endswith("：") for line in sample_text("zh").splitlines())
    assert "：" not in sample_text("en")


def test_chinese_times_rise_over_forty_minutes():
    stamps = [match.groups()[:3] for match in LABEL.finditer(sample_text("zh")) if match[1]]
    seconds = [int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in stamps]
    assert 20 < len(seconds) < len(sample_text("zh").splitlines())
    assert seconds == sorted(set(seconds))
    assert 38 * 60 < seconds[-1] <= 41 * 60


@pytest.mark.parametrize("language", LANGUAGES)
def test_many_more_than_forty_different_figures_are_said(language):
    assert len(set(re.findall(FIGURE[language], spoken(language)))) >= 100


@pytest.mark.parametrize(("language", "kind"), [(lang, kind) for lang in KINDS for kind in KINDS[lang]])
def test_figures_of_every_kind_are_there(language, kind):
    assert re.search(KINDS[language][kind], spoken(language))


@pytest.mark.parametrize(("language", "noise"), [(lang, noise) for lang in NOISE for noise in NOISE[lang]])
def test_it_reads_like_speech_recognition(language, noise):
    pattern, least = NOISE[language][noise]
    found = [match[0] for match in re.finditer(pattern, sample_text(language))]
    assert len(found) >= least, found


def test_the_meeting_dates_are_the_weekdays_that_are_said():
    assert "Thursday the twelfth of March" in sample_text("en")
    assert "四月九号星期四" in sample_text("zh")
    assert (MEETING_DATE["en"].month, MEETING_DATE["en"].day) == (3, 12)
    assert (MEETING_DATE["zh"].month, MEETING_DATE["zh"].day) == (4, 9)
    assert [MEETING_DATE[language].isoweekday() for language in LANGUAGES] == [4, 4]


@pytest.mark.parametrize("language", LANGUAGES)
def test_files_are_clean_utf8_with_plain_line_ends(language):
    for path in (sample_path(language), summary_path(language), summary_path(language, "flawed")):
        raw = path.read_bytes()
        assert raw.decode("utf-8").encode("utf-8") == raw
        assert not raw.startswith(b"\xef\xbb\xbf")
        assert b"\r" not in raw
        assert raw.endswith(b"\n")


def test_every_file_of_the_folder_is_declared_as_package_data():
    """An editable install finds undeclared files too, a wheel does not."""
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = declared["tool"]["setuptools"]["package-data"]["seatrial.samples"]
    data = {entry.name for entry in files("seatrial.samples").iterdir() if entry.is_file()} - {"__init__.py"}
    assert data >= {"planted.toml"} | {
        f"meeting_{x}{y}.txt" for x in LANGUAGES for y in ("", "_summary", "_summary_flawed")
    }
    assert [name for name in sorted(data) if not any(fnmatch(name, pattern) for pattern in patterns)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_labels_lead_from_the_flawed_summary_to_the_good_one(language):
    """Undoing every planted error gives the good summary to the letter: nothing differs without a label."""
    text = summary_text(language, "flawed")
    for planted in planted_errors(language):
        assert text.count(planted.context) == 1
        assert planted.context.count(planted.text) == 1
        text = text.replace(planted.context, planted.context.replace(planted.text, planted.right))
    assert text == summary_text(language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_planted_errors_are_many_and_of_many_kinds(language):
    planted = planted_errors(language)
    assert len([error for error in planted if not error.elsewhere]) >= 6
    assert {error.kind for error in planted} >= {"amount", "count", "unit", "date", "code", "person"}
    assert {error.guard for error in planted} == {"names", "numbers"}
    assert len({error.span(summary_text(language, "flawed")) for error in planted}) == len(planted)


@pytest.mark.parametrize("call", [sample_path, sample_text, summary_path, summary_text, planted_errors])
@pytest.mark.parametrize("language", ["fr", "", "EN", "../en"])
def test_an_unknown_language_is_told_in_one_line(call, language):
    with pytest.raises(UserError, match=r"^no sample in the language .*: choose en or zh$"):
        call(language)


def test_an_unknown_kind_of_summary_is_told_in_one_line():
    with pytest.raises(UserError, match=r"^no sample summary of the kind 'bad': choose good or flawed$"):
        summary_path("en", "bad")
