# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""Units: what may stand before or after a figure, its canonical name, its dimension and its size.

One table for both languages. Sizes are exact decimals to a base unit of the dimension, from the SI brochure and
the international yard and pound agreement (1 mile = 1609.344 m, 1 lb = 0.45359237 kg); Chinese market units by
the 1959 decree (斤 = 0.5 kg, 亩 = 2000/3 m2). Look-up is by dictionary, longest name first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from seatrial.guards.numbers.quantity import (
    AMOUNT,
    BASIS_POINT,
    COUNT,
    DURATION,
    MEASURE,
    PERCENT,
    PERCENTAGE_POINT,
    RATIO,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """`name` is canonical (USD, kg, %), `factor` converts to the base unit of `dimension` (plus `offset` for °F)."""

    name: str
    kind: str
    dimension: str
    factor: Decimal = Decimal(1)
    offset: Decimal = Decimal(0)


def _table(kind: str, dimension: str, rows: str) -> dict[str, Unit]:
    """Rows "canonical factor: name, name" -> name -> Unit."""
    units = {}
    for row in rows.strip().splitlines():
        head, names = row.split(":", 1)
        name, factor = head.split()
        ratio = factor.split("/")
        size = Decimal(ratio[0]) / (Decimal(ratio[1]) if len(ratio) > 1 else 1)
        for alias in names.split(","):
            units[alias.strip()] = Unit(name, kind, dimension, size)
    return units


CURRENCY_AFTER = _table(
    AMOUNT,
    "money",
    """
    USD 1: dollar, dollars, usd, us dollar, us dollars, u.s. dollar, u.s. dollars, american dollars, buck, bucks, 美元, 美金, 美刀, 刀, us$, $, usdollars
    CNY 1: yuan, rmb, cny, renminbi, chinese yuan, 元, 块, 块钱, 元人民币, 人民币, 圆, 元钱, 块人民币, ￥, ¥, kuai
    EUR 1: euro, euros, eur, €, 欧元, 欧
    GBP 1: pound sterling, pounds sterling, gbp, quid, £, 英镑, british pounds, british pound
    JPY 1: yen, jpy, 日元, 日圆, japanese yen
    HKD 1: hkd, hk dollars, hong kong dollars, hong kong dollar, 港元, 港币, 元港币, 港纸, hk$
    TWD 1: twd, ntd, 新台币, 台币, 元台币, new taiwan dollars, 元新台币, nt$
    AUD 1: aud, australian dollars, australian dollar, 澳元, 澳币, a$
    CAD 1: cad, canadian dollars, canadian dollar, 加元, 加币, c$
    SGD 1: sgd, singapore dollars, 新加坡元, 新元, 坡币, s$
    NZD 1: nzd, new zealand dollars, 新西兰元
    CHF 1: chf, swiss francs, swiss franc, 瑞士法郎, 瑞郎
    KRW 1: krw, won, korean won, south korean won, 韩元, 韩币, ₩
    INR 1: inr, rupee, rupees, indian rupees, indian rupee, 卢比, 印度卢比, ₹
    RUB 1: rub, ruble, rubles, rouble, roubles, russian rubles, 卢布, ₽
    BRL 1: brl, reais, brazilian reais, brazilian real, 雷亚尔, r$
    MXN 1: mxn, mexican pesos, mexican peso, 墨西哥比索
    PESO 1: peso, pesos, 比索
    THB 1: thb, baht, 泰铢
    VND 1: vnd, dong, 越南盾
    MYR 1: myr, ringgit, 林吉特, 马币
    PHP 1: philippine pesos, 菲律宾比索
    IDR 1: idr, rupiah, 印尼盾, 印尼卢比
    SEK 1: sek, swedish kronor, swedish krona, 瑞典克朗
    NOK 1: nok, norwegian kroner, norwegian krone, 挪威克朗
    DKK 1: dkk, danish kroner, danish krone, 丹麦克朗
    KRONA 1: kronor, krona, kroner, krone, 克朗
    PLN 1: pln, zloty, zlotys, 兹罗提
    TRY 1: turkish lira, turkish liras, 土耳其里拉
    ZAR 1: zar, rand, 兰特
    SAR 1: sar, riyal, riyals, saudi riyals, 沙特里亚尔, 里亚尔
    AED 1: aed, dirham, dirhams, 迪拉姆
    ILS 1: ils, shekel, shekels, 谢克尔, ₪
    NLG 1: dutch guilders, dutch guilder, guilder, guilders, gilder, gilders, 荷兰盾
    FRF 1: francs, franc, french francs, 法郎
    DEM 1: deutsche mark, deutsche marks, deutschmark, deutschmarks, d-mark, marks, 德国马克, 马克
    BTC 1: bitcoin, bitcoins, btc, ₿, 比特币
    USD 0.01: cent, cents, us cents, ¢, 美分
    GBP 0.01: pence, penny, 便士
    EUR 0.01: euro cents, euro cent, centimes, centime, 欧分
    CNY 0.1: 角, 毛钱, 毛, jiao, mao
    CRC 1: ₡, colones
    USD 1000000: musd
    EUR 1000000: meur
    GBP 1000000: mgbp
    AUD 1000000: maud
    CAD 1000000: mcad
    SEK 1000000: msek
    CNY 0.01: 分钱
    """,
)
CURRENCY_AFTER["pounds"] = CURRENCY_AFTER["pound"] = Unit("GBP", AMOUNT, "money")
_BEFORE = _table(
    AMOUNT,
    "money",
    """
    USD 1: $, us$, us $, usd, usd$, u.s. $, u.s.$, 美元, 美金, us
    CNY 1: ¥, ￥, rmb, cny, cn¥, 人民币, rmb¥
    EUR 1: €, eur, euro, 欧元
    GBP 1: £, gbp
    JPY 1: jpy, jp¥, 日元
    HKD 1: hk$, hkd, hk $, hkd$, 港币, 港元
    TWD 1: nt$, twd, ntd, 新台币
    AUD 1: a$, au$, aud, aud$
    CAD 1: c$, c $, ca$, cad, can$
    SGD 1: s$, sgd, sg$
    NZD 1: nz$, nzd
    CHF 1: chf
    KRW 1: krw, ₩
    INR 1: ₹, inr, rs, rs.
    RUB 1: ₽, rub
    BRL 1: r$, brl
    MXN 1: mxn, mx$, mex$
    THB 1: thb, ฿
    VND 1: vnd, ₫
    MYR 1: rm, myr
    PLN 1: pln
    ZAR 1: zar
    SAR 1: sar
    AED 1: aed
    ILS 1: ₪, ils
    SEK 1: sek
    NOK 1: nok
    DKK 1: dkk
    BTC 1: ₿, btc
    CRC 1: ₡
    USD 1000000: musd
    EUR 1000000: meur
    AUD 1000000: maud
    SEK 1000000: msek
    """,
)
_BEFORE.pop("us")
CURRENCY_BEFORE = _BEFORE

_DURATION = _table(
    DURATION,
    "time",
    """
    second 1: second, seconds, sec, secs, 秒, 秒钟, 秒种
    millisecond 0.001: millisecond, milliseconds, ms, msec, 毫秒
    microsecond 0.000001: microsecond, microseconds, us, µs, μs, 微秒
    minute 60: minute, minutes, min, mins, 分钟, 分, 分种
    quarter-hour 900: 刻钟, 刻
    hour 3600: hour, hours, hr, hrs, h, 小时, 个小时, 钟头, 个钟头, 个钟, 时
    day 86400: day, days, 天, 日, business day, business days, working day, working days, 个工作日, 工作日, 天时间, 昼夜
    night 86400: night, nights, 晚, 夜
    week 604800: week, weeks, wk, wks, w, 周, 个星期, 星期, 礼拜, 个礼拜, 个周
    fortnight 1209600: fortnight, fortnights
    month 2592000: month, months, mo, mos, 个月, 月, 个自然月
    quarter 7776000: quarter, quarters, 个季度, 季度
    year 31104000: year, years, yr, yrs, y, 年, 年时间, 周年, 个年头, 载, 个财年
    decade 311040000: decade, decades, 个年代
    century 3110400000: century, centuries, 个世纪, 世纪
    """,
)
_AGE = _table(COUNT, "age", "year-old 1: years old, year old, year-old, years of age, 岁, 周岁, 岁半, 多岁")

_PERCENT = {
    name: Unit("%", PERCENT, "percent")
    for name in ("%", "percent", "per cent", "percents", "pct", "percentage", "个百分比", "pc", "个%")
}
_POINTS = {
    name: Unit("pp", PERCENTAGE_POINT, "pp")
    for name in (
        "percentage points",
        "percentage point",
        "percent points",
        "pp",
        "ppt",
        "ppts",
        "pps",
        "个百分点",
        "百分点",
        "个点",
    )
} | {
    name: Unit("bp", BASIS_POINT, "pp", Decimal("0.01"))
    for name in ("basis points", "basis point", "bp", "bps", "个基点", "基点", "个bp", "个bps")
}
_RATIO = {name: Unit("x", RATIO, "times") for name in ("times", "x", "fold", "-fold", "倍", "倍以上", "×")}

_MEASURES = (
    _table(
        MEASURE,
        "length",
        """
        m 1: m, meter, meters, metre, metres, 米, 公尺
        km 1000: km, kms, kilometer, kilometers, kilometre, kilometres, 公里, 千米
        cm 0.01: cm, cms, centimeter, centimeters, centimetre, centimetres, 厘米, 公分
        mm 0.001: mm, millimeter, millimeters, millimetre, millimetres, 毫米
        um 0.000001: micron, microns, micrometer, micrometers, micrometre, 微米, μm, µm
        nm 0.000000001: nm, nanometer, nanometers, nanometre, 纳米
        dm 0.1: dm, decimeter, decimeters, 分米
        mi 1609.344: mile, miles, mi, 英里
        ft 0.3048: foot, feet, ft, 英尺
        in 0.0254: inch, inches, ", 英寸, 吋, 寸
        yd 0.9144: yard, yards, yd, 码
        nmi 1852: nautical mile, nautical miles, 海里
        li 500: 里, 里地, 里路
        zhang 10/3: 丈
        chi 1/3: 尺
        ly 9460730472580800: light year, light years, 光年
        """,
    )
    | _table(
        MEASURE,
        "area",
        """
        m2 1: square meter, square meters, square metre, square metres, sq m, sqm, m2, m², ㎡, 平方米, 平方, 平米, 平, 平方公尺
        km2 1000000: square kilometer, square kilometers, square kilometre, square kilometres, sq km, km2, km², ㎢, 平方公里, 平方千米
        cm2 0.0001: square centimeters, square centimeter, cm2, cm², 平方厘米
        ha 10000: hectare, hectares, ha, 公顷, 顷
        mu 2000/3: mu, 亩
        acre 4046.8564224: acre, acres, 英亩
        ft2 0.09290304: square foot, square feet, sq ft, sqft, ft2, ft², 平方英尺
        mi2 2589988.110336: square mile, square miles, sq mi, 平方英里
        """,
    )
    | _table(
        MEASURE,
        "volume",
        """
        l 1: l, liter, liters, litre, litres, 升, 公升
        ml 0.001: ml, milliliter, milliliters, millilitre, millilitres, 毫升, cc
        m3 1000: cubic meter, cubic meters, cubic metre, cubic metres, m3, m³, 立方米, 立方, 方
        cm3 0.001: cubic centimeter, cubic centimeters, cm3, cm³, 立方厘米
        ft3 28.316846592: cubic foot, cubic feet, 立方英尺
        km3 1000000000000: cubic kilometers, cubic kilometer, 立方千米
        gal 3.785411784: gallon, gallons, gal, 加仑
        bbl 158.987294928: barrel, barrels, bbl, 桶
        qt 0.946352946: quart, quarts
        pt 0.473176473: pint, pints, 品脱
        cup 0.2365882365: cups
        tsp 0.00492892159375: teaspoon, teaspoons, tsp
        tbsp 0.01478676478125: tablespoon, tablespoons, tbsp
        fl-oz 0.0295735295625: fluid ounce, fluid ounces, fl oz, 液盎司
        """,
    )
    | _table(
        MEASURE,
        "mass",
        """
        kg 1: kg, kgs, kilogram, kilograms, kilogramme, kilogrammes, kilo, kilos, 公斤, 千克, ㎏
        g 0.001: g, gram, grams, gramme, grammes, 克
        mg 0.000001: mg, milligram, milligrams, milligramme, milligrammes, 毫克
        ug 0.000000001: microgram, micrograms, microgramme, microgrammes, μg, µg, mcg, 微克
        t 1000: t, ton, tons, tonne, tonnes, metric ton, metric tons, metric tonnes, 吨, 公吨
        lb 0.45359237: lb, lbs, 磅
        oz 0.028349523125: oz, ounce, ounces, 盎司
        jin 0.5: 斤, 市斤
        liang 0.05: 两
        qian 0.005: 钱
        """,
    )
    | _table(
        MEASURE,
        "data",
        """
        bit 1: bit, bits, 位, 比特
        B 8: byte, bytes, 字节
        kB 8000: kb, kilobyte, kilobytes, 千字节
        MB 8000000: mb, megabyte, megabytes, 兆字节, m字节
        GB 8000000000: gb, gigabyte, gigabytes, gig, gigs, 吉字节, 个g
        TB 8000000000000: tb, terabyte, terabytes, 太字节
        PB 8000000000000000: pb, petabyte, petabytes
        GiB 8589934592: gib, gibibytes
        MiB 8388608: mib, mebibytes
        kbit 1000: kilobit, kilobits, kbit
        Mbit 1000000: megabit, megabits, mbit, 兆比特
        Gbit 1000000000: gigabit, gigabits, gbit
        """,
    )
    | _table(
        MEASURE,
        "rate",
        """
        Mbit/s 1: mbps, mbit/s, 兆每秒
        Gbit/s 1000: gbps, gbit/s
        MB/s 8: mb/s
        GB/s 8000: gb/s
        kbit/s 0.001: kbps
        """,
    )
    | _table(
        MEASURE,
        "speed",
        """
        km/h 1: km/h, kph, kmph, kmh, km/hr, kilometers per hour, kilometer per hour, kilometres per hour, 公里每小时, 千米每小时, 公里/小时
        mph 1.609344: mph, miles per hour, mile per hour, 英里每小时
        m/s 3.6: m/s, meters per second, metres per second, 米每秒, 米/秒
        knot 1.852: knot, knots, 节
        """,
    )
    | _table(
        MEASURE,
        "power",
        """
        W 1: watt, watts, 瓦, 瓦特
        kW 1000: kw, kilowatt, kilowatts, 千瓦
        MW 1000000: mw, megawatt, megawatts, 兆瓦
        GW 1000000000: gw, gigawatt, gigawatts, 吉瓦
        hp 745.69987158227: horsepower, hp, 马力
        """,
    )
    | _table(
        MEASURE,
        "energy",
        """
        Wh 1: wh, watt hours
        kWh 1000: kwh, kilowatt hour, kilowatt hours, kilowatt-hours, 千瓦时, 度电, 千瓦小时
        MWh 1000000: mwh, megawatt hours, 兆瓦时
        GWh 1000000000: gwh, gigawatt hours, 吉瓦时
        TWh 1000000000000: twh, terawatt hours
        J 1/3600: joule, joules, 焦耳, 焦
        kJ 1000/3600: kj, kilojoules, 千焦
        cal 4.184/3600: cal, calories, 卡路里, 卡
        kcal 4184/3600: kcal, kilocalories, 千卡, 大卡
        """,
    )
    | _table(
        MEASURE,
        "frequency",
        """
        Hz 1: hz, hertz, 赫兹, 赫
        kHz 1000: khz, kilohertz, 千赫
        MHz 1000000: mhz, megahertz, 兆赫
        GHz 1000000000: ghz, gigahertz, 吉赫
        """,
    )
    | _table(
        MEASURE,
        "voltage",
        """
        V 1: volt, volts, 伏, 伏特
        kV 1000: kv, kilovolts, 千伏
        mV 0.001: millivolts, 毫伏
        """,
    )
    | _table(MEASURE, "charge", "Ah 1: ah, amp hours\n mAh 0.001: mah, milliamp hours, 毫安, 毫安时")
    | _table(MEASURE, "compute", "TOPS 1: tops\n FLOPS 1: flops\n TFLOPS 1000000000000: tflops, teraflops")
    | _table(MEASURE, "angle", "deg 1: 角度")
)
_TEMPERATURES = {
    **dict.fromkeys(
        (
            "°c",
            "℃",
            "摄氏度",
            "度c",
            "degrees celsius",
            "degree celsius",
            "degrees c",
            "degrees centigrade",
            "celsius",
        )
        + ("centigrade", "deg celsius", "deg c", "° c", "celcius", "centigrate", "摄氏", "degrees celcius"),
        Unit("C", MEASURE, "temperature"),
    ),
    **dict.fromkeys(
        ("°f", "℉", "华氏度", "degrees fahrenheit", "degree fahrenheit", "degrees f", "fahrenheit", "deg f")
        + ("deg fahrenheit", "° f", "farenheit", "华氏", "degrees farenheit"),
        Unit("F", MEASURE, "temperature", Decimal(5) / 9, Decimal(-32)),
    ),
    **dict.fromkeys(
        ("k", "kelvin", "kelvins", "开尔文"),
        Unit("K", MEASURE, "temperature", Decimal(1), Decimal("-273.15")),
    ),
    **dict.fromkeys(("degrees", "degree", "deg", "°", "度"), Unit("degree", MEASURE, "temperature")),
}
_TEMPERATURES.pop("k")

AFTER: dict[str, Unit] = (
    _MEASURES | _TEMPERATURES | _RATIO | _DURATION | _AGE | CURRENCY_AFTER | _PERCENT | _POINTS
)
BY_NAME: dict[str, Unit] = {}
for _unit in AFTER.values():
    BY_NAME.setdefault(_unit.name, _unit)
    if _unit.kind == AMOUNT:
        BY_NAME[_unit.name] = Unit(_unit.name, AMOUNT, "money")
# Measure words of Chinese counts, by what they count; generic ones agree with all.
_CLASSIFIERS = {
    "people": "人 名 位 人次 口 员",
    "generic": "个 些 种 类 项 样 组 批 套 对 双 系列 大 号人",
    "firm": "家 所 座 间 栋 幢 处 户 厂 院 店 馆",
    "case": "件 宗 起 桩 单 笔 例 票 案",
    "document": "份 张 页 本 篇 册 封 部 幅 条 款 章 行 字 句 段 稿",
    "vehicle": "辆 台 架 艘 列 部 枚 门 艇 匹 头 只 支 根 把 块 盏 颗 粒 株 棵 朵 片",
    "time": "次 届 回 场 轮 期 局 遍 趟 场次 班 班次 节 集 季 步 盘 任 级 代",
    "score": "分 点 票 胜 平 负 球 环 席",
    "place": "层 楼 号 市 省 县 区 国 村 镇 乡 岛",
    "container": "箱 包 瓶 杯 盒 袋 桶 罐 吨位 排 队 床 亩次 组人",
    "side": "方面 方 岸 国 党 地 大类",
}
CLASSIFIERS: dict[str, str] = {word: group for group, words in _CLASSIFIERS.items() for word in words.split()}

_UNIT_BEGINS = frozenset(name[0] for name in AFTER) | frozenset("([{<°")  # what can begin a unit
# First character of a Chinese unit -> how long the units are that it begins, longest first.
_LENGTHS = {
    first: tuple(sorted({len(name) for name in AFTER if name[0] == first and len(name) <= 5}, reverse=True))
    for first in {name[0] for name in AFTER}
    if "\u4e00" <= first <= "\u9fff"
}

_WORD = re.compile(r"[ -]?([a-zµμ°][a-zµμ/]*(?:[²³]|\d(?!\d))?)(?![a-z0-9])")
_NEXT_WORD = re.compile(r"[ -]([a-z]+)(?![\w])")
_SYMBOLS = re.compile(r" ?(%|℃|℉|° ?[cf](?![a-z])|°|\$|€|£|¥|￥|₩|₹|₽|₿|₡|₪|¢|㎡|㎏|㎢|×|\")(?! ?\d)")
_BRACKETED = re.compile(r" ?[(\[{<]([a-z%°/]{1,8}[²³]?)[)\]}>]")


def unit_after(text: str, end: int) -> tuple[Unit, int] | None:
    """The unit that begins at `end` of a folded text (a space or hyphen may stand between) and where it ends."""
    sign = text[end : end + 1]
    if sign in (" ", "-"):
        sign = text[end + 1 : end + 2]
    if sign not in _UNIT_BEGINS:
        return None
    if "\u4e00" <= sign <= "\u9fff":
        return _chinese_unit(text, end)
    word = _WORD.match(text, end)
    if word is not None:
        return _latin_unit(text, word)
    for pattern in (_SYMBOLS, _BRACKETED):
        found = pattern.match(text, end)
        if found is not None:
            unit = AFTER.get(found[1])
            return None if unit is None else (unit, found.end())
    return None


def _latin_unit(text: str, word: re.Match[str]) -> tuple[Unit, int] | None:
    """Tries one to three words, longest first: "per cent", "square feet", "hong kong dollars"."""
    names, ends = [word[1]], [word.end()]
    while len(names) < 3:
        following = _NEXT_WORD.match(text, ends[-1])
        if following is None:
            break
        names.append(f"{names[-1]} {following[1]}")
        ends.append(following.end())
    for name, end in zip(reversed(names), reversed(ends), strict=True):
        unit = AFTER.get(name)
        if unit is not None:
            return unit, end
    return None


def _chinese_unit(text: str, end: int) -> tuple[Unit, int] | None:
    start = end + 1 if text[end : end + 1] == " " else end
    for length in _LENGTHS.get(text[start : start + 1], ()):
        unit = AFTER.get(text[start : start + length])
        if unit is not None and start + length <= len(text):
            return unit, start + length
    return None


def classifier_after(text: str, end: int) -> tuple[str, int] | None:
    """The Chinese measure word at `end` and where it ends."""
    start = end + 1 if text[end : end + 1] == " " else end
    for length in (2, 1):
        word = text[start : start + length]
        if word in CLASSIFIERS:
            return word, start + length
    return None


_BEFORE_ENDS = frozenset(name[-1] for name in CURRENCY_BEFORE)
_BEFORE_LONGEST = max(map(len, CURRENCY_BEFORE))


def currency_before(text: str, start: int) -> tuple[Unit, int] | None:
    """The currency that ends right before `start` ("$", "HK$ ", "人民币") and where it begins."""
    end = start - 1 if text[start - 1 : start] == " " else start
    if end <= 0 or text[end - 1] not in _BEFORE_ENDS:
        return None
    for length in range(min(_BEFORE_LONGEST, end), 0, -1):
        unit = CURRENCY_BEFORE.get(text[end - length : end])
        if unit is not None and _stands_alone(text, end - length):
            return unit, end - length
    return None


_OWNED = re.compile(r"\d ?$")


def _stands_alone(text: str, at: int) -> bool:
    """A code in letters is a word of its own, and does not belong to a number before it: 10 rmb 20 usd."""
    if not (text[at].isalpha() and text[at].isascii()):
        return True
    if at and text[at - 1].isalnum():
        return False
    return _OWNED.search(text, max(0, at - 2), at) is None
