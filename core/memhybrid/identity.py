"""Whether a query is about who someone is: a small default in English and Chinese, replaceable in a profile."""

from __future__ import annotations

import re

_IDENTITY = re.compile(
    r"\bwho (?:am i|are you|is (?:he|she|the user))\b|\b(?:my|your|his|her|their|user'?s) (?:full |real |nick)?(?:name|age|birthday|job|"
    r"occupation|profession|gender|nationality|hometown|identity)\b|\bhow old (?:am i|are you|is)\b|\bwhat(?:'s| is) .{0,20}\bname\b|"
    r"\bwhere (?:am i|are you|is (?:he|she)) from\b|\bintroduce (?:yourself|me)\b|"
    r"我是谁|你是谁|他是谁|她是谁|叫什么|名字|姓名|昵称|多大|几岁|年龄|生日|职业|什么工作|做什么的|性别|哪里人|籍贯|家乡|身份|自我介绍",
    re.IGNORECASE,
)


def is_identity_query(query: str) -> bool:
    """True for questions about name, age, birthday, job, gender, origin or "who am I", in English and Chinese."""
    return bool(_IDENTITY.search(query[:2_000]))
