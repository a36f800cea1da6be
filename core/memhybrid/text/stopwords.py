"""Function words, which say nothing about what a text is about. Case-folded, without accents, apostrophes straight."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# "off", "down", "under" and the like stay out: they make the meaning of phrasal verbs.
ENGLISH: Final = _words(
    """
    a about after again all also am an and any are as at be because been before being between both but by can cannot
    could did do does doing done during each either else ever every few for from further get gets getting got had has
    have having he her here hers herself him himself his how however i if in into is it its itself just let like many
    may me might more most much must my myself neither no nor not now of on once one only or other others our ours
    ourselves out own really same shall she should since so some such than that the their theirs them themselves then
    there these they this those though through thus to too until up us very was we were what when where whether which
    while who whom whose why will with within without would yes yet you your yours yourself yourselves
    ok okay oh hey hi hello thanks etc e.g i.e vs
    don't doesn't didn't isn't aren't wasn't weren't haven't hasn't hadn't won't wouldn't can't couldn't shouldn't
    mustn't ain't needn't shan't mightn't dont doesnt didnt isnt im ive youre thats
    """
)

# Ordinary words that often stand at the start of a sentence or in a heading: capitals do not make names of them.
COMMON: Final = ENGLISH | _words(
    """
    able above absolutely according actually add ago agree ah aha almost alone along already alright although always
    amazing another answer anyone anything anyway anyways apparently around ask asked available aw awesome away back
    bad based basically beautiful become best better big bit book both bring brother build buy bye call called came
    care change check children city class clean close cold come coming company congrats congratulations cool correct
    course create cute dad data date daughter day days dear definitely delete despite different dinner document dog
    down due early easy eat effective email end enjoy enough especially even evening event everybody everyone
    everything exactly example excellent exciting family far father favorite favourite feel feeling felt file finally
    find fine first five follow food found four friend friends full fun fyi game gave general generally give given
    glad go god goes going gonna good goodbye gosh great group guess guys ha haha half happy hard he's hear heard help
    hence high hmm home honestly hope hopefully hot house huge husband idea image important incredible indeed
    information instead interested interesting issue job join keep kid kids kind kinda know known large last late
    lately later least left less life list listen little live living local lol long look looking looks lot lots love
    loved lovely low lucky made main make makes making man maybe mean means meanwhile meeting men met mine mom moreover
    morning mother move mr mrs ms music name named near nearly need never nevertheless new news next nice night nobody
    none nope note nothing number obviously off often old omg open option order otherwise over page part particularly
    past pay people perfect perhaps person personally photo pick picture place plan planning play please plus
    possible previously price probably problem project proud put question quick quite rather read ready real recently
    regarding remember respect result right room run said saw say says school second see seeing seem seems seen
    send sent set seven several share show shows similarly simply six sister small somebody someone something
    sometimes somewhere son soon sorry sound sounds speaking special start started starting still stop story
    student sup super sure surely take taking talk team tell ten thank then there's therefore thing things think
    third thought thousand three thrilled time tip title today together told tomorrow tonight took top totally tough
    toward try trying turn two type under unfortunately unless unlike update upon use used user using usually view
    visit wait walk wanna want wanted wants watch water way week weekend weeks welcome well went whatever whenever
    wherever wife win wish woman women wonderful work worked working works world worry wow write wrong yeah year
    years yep yesterday young yup dr prof
    animals appreciate aww bet books btw cause chat cheers cherish count crazy creativity events feels gotta gather hang
    hold huh impressive keeping knowing memories mental mentor moments nah nature oof oops ouch passion pets phew
    positive pretty progress reminds seriously simple stay stories strength strong stuff support thoughts tons totes
    trust unconditional unforgettable whoa woah woohoo woo ya y'all yay yum
    der die das ein eine und ich du er sie wir ihr es nicht le les un une des et je il elle nous vous el los las
    """
)

# Nouns that make no name of a noun compound, and the adjectives that add nothing to one.
VAGUE: Final = _words(
    """
    act acts bit chance change changes chat day days deal difference effect effort experience experiences feeling
    feelings goal goals idea ideas impact influence kind kinds life lot lots luck memories memory moment moments month
    months news one ones part parts people person photo photos pic pics picture pictures place places plan plans
    reminder stuff thing things thought thoughts time times vibe vibes way ways week weekend weeks word words work
    year years
    additional biggest common current entire exciting final future general greatest interesting latest little main
    major minor necessary older only past positive possible previous recent same significant similar special specific
    strong true unforgettable upcoming various younger
    """
)

# Weekdays and months are capitalised in English but tie unrelated memories together.
CALENDAR: Final = _words(
    """
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun am pm
    """
)

CHINESE: Final = _words(
    """
    的 地 得 了 着 过 是 在 和 与 及 或 也 都 就 还 又 再 很 太 更 最 把 被 给 让 向 对 从 到 于 以 为 而 且 但 则 之 其
    这 那 哪 此 该 各 每 某 我 你 您 他 她 它 咱 们 吗 呢 吧 啊 呀 嘛 哦 嗯 哈 啦 么 个 上 下 中 里 有 不 没 要 会 能 可
    想 说 请 等 所 由 并 将 才 只 谁 几 啥 怎 何 跟 比 去 来 做 用
    我们 你们 您们 他们 她们 它们 咱们 自己 大家 这个 那个 这些 那些 这里 那里 这儿 那儿 这样 那样 这么 那么 哪个 哪些
    哪里 哪儿 什么 怎么 怎样 怎么样 如何 为什么 为何 多少 几个 是否 是不是 有没有 可以 可能 没有 不是 就是 还是 但是
    不过 可是 因为 所以 如果 虽然 而且 或者 以及 并且 然后 因此 于是 由于 关于 对于 其中 其他 其它 一个 一些 一下 一种
    已经 正在 曾经 非常 十分 比较 真的 的话 之后 之前 以后 以前 时候 請 嗎 們 這 個 會 說 為 過 還 對 從 沒 來 後 與
    我們 你們 他們 她們 這個 那個 這些 什麼 怎麼 怎樣 為什麼 為何 沒有 還是 但是 因為 所以 雖然 這裡 那裡 這樣 那樣
    """
)
