"""Twenty short invented meetings with a person's summary each, for the tuning tutorial.

A meeting is three of six topics of its language, with other figures and other speakers each time; the
summary has one sentence for each topic, in words of its own. People and firms are made up. Not part of the
package.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

PEOPLE = {
    "en": ["Nora Feld", "Tom Reyes", "Ines Ward", "Abel Osei", "Mina Kato", "Rolf Brandt"],
    "zh": ["方敏", "罗刚", "石岚", "丁磊", "贺雨", "邵文"],
}


@dataclass(frozen=True)
class Topic:
    """What is said, turn by turn, and what a person would write of it. {a} and {b} are figures."""

    turns: tuple[str, ...]
    summary: str


TOPICS = {
    "en": [
        Topic(
            (
                "The loading ramp at the north gate is worn out, and two drivers have complained this week.",
                "A new one costs {a} dollars and the supplier can bring it within {b} days.",
                "Yeah, we should not wait for the audit with that. Let us order it today.",
            ),
            "A new loading ramp for {a} dollars will be ordered today and arrives within {b} days.",
        ),
        Topic(
            (
                "Our support line answered {a} calls in May, and the average wait was {b} minutes.",
                "That is too long. Um, most of them asked about the new invoices.",
                "Then let us put a clear note on the invoice and look at the numbers again in July.",
            ),
            "With {a} callers waiting {b} minutes on average, a note on the invoices is to bring calls down.",
        ),
        Topic(
            (
                "The training for the new planning software takes {b} hours for each person.",
                "With {a} people that is a lot of time, could we do it in small groups?",
                "Okay, groups of six, and the first group starts on the second Monday.",
            ),
            "All {a} people get {b} hours of training in small groups, beginning on the second Monday.",
        ),
        Topic(
            (
                "The customer in Halden wants {a} units instead of half of that, but at a lower price.",
                "We can go down by {b} percent, not more, the steel has become dearer.",
                "I will offer them that and ask for a longer contract in return.",
            ),
            "Halden will be offered {a} units at {b} percent less in exchange for a longer contract.",
        ),
        Topic(
            (
                "The heating in the old hall used {a} kilowatt hours in winter, that is far above the plan.",
                "An engineer says new controls would save about {b} percent.",
                "Right, please get two offers, and then we decide in the next round.",
            ),
            "Two offers for new heating controls, which may save {b} percent, will be compared next time.",
        ),
        Topic(
            (
                "We had {a} returns last month, mostly because of broken corners on the boxes.",
                "Thicker cardboard adds {b} cents to each box, I have asked.",
                "That is cheaper than the returns, so we change the boxes from August on.",
            ),
            "Thicker boxes at {b} cents more are used from August because of {a} returns.",
        ),
    ],
    "zh": [
        Topic(
            (
                "北门的装卸平台已经磨损得很厉害，这周有两位司机来投诉。",
                "换一个新的要{a}元，供应商说{b}天之内可以送到。",
                "嗯，这个就不要等审计了，今天就下单吧。",
            ),
            "会议决定今天订购新的装卸平台，价格{a}元，{b}天内到货。",
        ),
        Topic(
            (
                "五月份客服一共接了{a}个电话，平均等待{b}分钟。",
                "等得太久了，那个，大部分人问的都是新发票的事情。",
                "那我们在发票上加一段说明，七月份再看一次数据。",
            ),
            "由于{a}个来电平均等待{b}分钟，将在发票上增加说明以减少咨询。",
        ),
        Topic(
            (
                "新的排产软件培训，每个人需要{b}个小时。",
                "一共{a}个人，时间不少，能不能分成小组来做？",
                "好的，六个人一组，第一组下下周一开始。",
            ),
            "全部{a}人分小组参加{b}小时的软件培训，第一组下下周一开始。",
        ),
        Topic(
            (
                "海登的客户想把数量提高到{a}台，但是希望价格低一些。",
                "最多降百分之{b}，不能再多了，钢材涨价了。",
                "我就按这个报价，同时请他们签更长的合同。",
            ),
            "对海登客户的{a}台订单最多降价百分之{b}，并争取更长的合同期。",
        ),
        Topic(
            (
                "旧厂房冬天的供暖用了{a}度电，远远超过计划。",
                "工程师说换新的控制器大概可以省百分之{b}。",
                "对，请先拿两家的报价，下次会议再决定。",
            ),
            "供暖用电超出计划，将比较两家控制器报价，预计可省百分之{b}。",
        ),
        Topic(
            (
                "上个月有{a}件退货，主要是因为纸箱的角破了。",
                "换厚一点的纸板，每个箱子多{b}分钱，我问过了。",
                "这比退货便宜，那从八月份开始换箱子。",
            ),
            "因为{a}件退货，从八月起改用每个贵{b}分钱的厚纸箱。",
        ),
    ],
}


def write_meetings(folder: Path, each: int = 10, seed: int = 7) -> None:
    """`each` meetings of each language into `folder/transcripts`, their summaries into `folder/summaries`."""
    for name in ("transcripts", "summaries"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    for language, topics in TOPICS.items():
        for number in range(1, each + 1):
            turns, sentences = [], []
            for topic in rng.sample(topics, 3):
                figures = {"a": f"{rng.randrange(12, 990) * 10:,}", "b": rng.randrange(3, 30)}
                speakers = rng.sample(PEOPLE[language], len(topic.turns))
                colon = ": " if language == "en" else "："
                turns += [
                    who + colon + said.format(**figures)
                    for who, said in zip(speakers, topic.turns, strict=True)
                ]
                sentences.append(topic.summary.format(**figures))
            name = f"{language}-{number:02d}.txt"
            (folder / "transcripts" / name).write_text("\n".join(turns) + "\n", encoding="utf-8")
            glue = " " if language == "en" else ""
            (folder / "summaries" / name).write_text(glue.join(sentences) + "\n", encoding="utf-8")
