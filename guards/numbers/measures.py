# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""Physical units of both languages, by dimension, with their size in its base unit.

Sizes are exact decimals from the SI brochure and the international yard and pound agreement (1 mile =
1609.344 m, 1 lb = 0.45359237 kg); Chinese market units by the 1959 decree (斤 = 0.5 kg, 亩 = 2000/3 m2).
"""

from __future__ import annotations

from decimal import Decimal

from seatrial.guards.numbers.quantity import MEASURE
from seatrial.guards.numbers.unit import Unit, table

MEASURES = (
    table(
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
    | table(
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
    | table(
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
    | table(
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
    | table(
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
    | table(
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
    | table(
        MEASURE,
        "speed",
        """
        km/h 1: km/h, kph, kmph, kmh, km/hr, kilometers per hour, kilometer per hour, kilometres per hour, 公里每小时, 千米每小时, 公里/小时
        mph 1.609344: mph, miles per hour, mile per hour, 英里每小时
        m/s 3.6: m/s, meters per second, metres per second, 米每秒, 米/秒
        knot 1.852: knot, knots, 节
        """,
    )
    | table(
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
    | table(
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
    | table(
        MEASURE,
        "frequency",
        """
        Hz 1: hz, hertz, 赫兹, 赫
        kHz 1000: khz, kilohertz, 千赫
        MHz 1000000: mhz, megahertz, 兆赫
        GHz 1000000000: ghz, gigahertz, 吉赫
        """,
    )
    | table(
        MEASURE,
        "voltage",
        """
        V 1: volt, volts, 伏, 伏特
        kV 1000: kv, kilovolts, 千伏
        mV 0.001: millivolts, 毫伏
        """,
    )
    | table(MEASURE, "charge", "Ah 1: ah, amp hours\n mAh 0.001: mah, milliamp hours, 毫安, 毫安时")
    | table(MEASURE, "compute", "TOPS 1: tops\n FLOPS 1: flops\n TFLOPS 1000000000000: tflops, teraflops")
    | table(MEASURE, "angle", "deg 1: 角度")
)
TEMPERATURES = {
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
TEMPERATURES.pop("k")
