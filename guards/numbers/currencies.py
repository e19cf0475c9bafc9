# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""Currencies, after and before an amount: names, signs and codes in both languages, with their hundredths."""

from __future__ import annotations

from seatrial.guards.numbers.quantity import AMOUNT
from seatrial.guards.numbers.unit import Unit, table

CURRENCY_AFTER = table(
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
_BEFORE = table(
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
