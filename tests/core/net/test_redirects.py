"""Redirect targets: the origin of AUTH_SITE_URL and the patterns of AUTH_REDIRECT_ALLOW_LIST."""

from urllib.parse import quote

from auth.core.net.redirects import AllowList
from tests.support.cases import cases

SITE = "https://app.example.com/start"


def leads_to(url, *patterns, site=SITE):
    return AllowList(site, patterns).checked(url)


@cases(
    "url",
    [
        *("https://app.example.com", "https://app.example.com/", "https://app.example.com/any/path"),
        *("https://app.example.com/any?query=1&x=%20", "https://app.example.com:443/path"),
        *("https://app.example.com?x", "https://app.example.com/%C3%BC", "HTTPS://app.example.com/"),
        *("https://APP.Example.com/x", "https://app.example.com/#/x?y", "https://app.example.com#a#b"),
    ],
)
def test_origin_of_the_site_is_allowed(url):
    assert leads_to(url) == url
    assert leads_to(None) == SITE


@cases("sign", "^`{|}")
def test_character_that_browsers_encode_is_allowed_encoded(sign):
    url = f"https://a.example/{sign}?{sign}#{sign}"
    assert leads_to(url, "https://a.example/**") == url.replace(sign, quote(sign))
    for pattern in (f"https://a.example/{sign}", f"https://a.example/{quote(sign).lower()}"):
        assert leads_to(url, pattern) == url.replace(sign, quote(sign))


OTHER_ORIGINS = [
    *("https://evil.example", "http://app.example.com", "https://app.example.com:8443"),
    *("https://app.example.com.evil.example", "https://evil.example/app.example.com", "https://example.com"),
    *("https://evil.example?https://app.example.com", "https://sub.app.example.com", "app.example.com"),
    *("//app.example.com", "/path", "path", ""),
]
# URLs that one parser takes for our host and another for a different one.
AMBIGUOUS = [
    *("https://app.example.com@evil.example", "https://app.example.com:x@evil.example"),
    *("https://user@app.example.com", "https://@app.example.com"),
    *("https://app.example.com\\@evil.example", "https://evil.example\\@app.example.com"),
    *("https://evil.example#@app.example.com", "https://app.example.com#\\fragment"),
    *("https://app.example.com/#\t", "https:app.example.com", "https:/app.example.com"),
    *("https:///app.example.com", "https:\\\\app.example.com", "HTTPS:\\\\app.example.com"),
    *("https://APP.example.com.evil.example", "https://app.example.com.", "https://app.example.com:"),
    *("https://app.example.com{.evil.example", "https://evil.example|.app.example.com"),
    *("https://evil.example^app.example.com/", "https://{app.example.com}/", "https://app.example.com`/"),
    *("HTTPS://user@app.example.com", "https://\u212aapp.example.com", "https://app.example.com%23/"),
    *("https://app.example.com:0443/x/../y", "https://app.example.com:99999", "https://app.example.com:-1"),
    *(
        "https://app.example.com:\uff14\uff14\uff13",
        "https://app。example。com",
        "https://\u0430pp.example.com",
    ),
    *("https://app.example.com\t.evil.example", "https://app.exam\nple.com", "\x00https://app.example.com"),
    *(" https://app.example.com", "https://app.example.com ", "https://app.example.com/a b"),
    *("https://app.example.com/\r\nSet-Cookie: x=y", "https://app.example.com/../x"),
    *("https://app.example.com/./x", "https://app.example.com/%2e%2e/x", "https://app.example.com/.%2E/x"),
    *("https://app.example.com/x%2f..%2fy", "https://app.example.com/x%5cy"),
    *("https://app.example.com/%0d%0aX: y", "https://app.example.com/%00"),
    *("https://app.example.com/x%252e%252e/y", "https://app.example.com/<script>"),
    *('https://app.example.com/"onload=x', "https://[app.example.com"),
    "https://app.example.com/" + "x" * 2048,
    *("javascript://app.example.com/%0aalert(1)", "javascript:alert(1)", "data:text/html,x", "vbscript:x"),
    *("file:///etc/passwd", "blob:https://app.example.com/x"),
]


@cases("url", OTHER_ORIGINS + AMBIGUOUS)
def test_other_origin_or_ambiguous_url_falls_back_to_the_site(url):
    assert leads_to(url) == SITE
    assert leads_to(url, "https://*.example.org/**", "myapp://callback/**") == SITE


# A pattern, the targets that it allows and those that it refuses, each without its "https://a.example".
ENDINGS = {
    "/x": ("/x", "- /x/ /xy /X"),
    "": ("- /", "/x s"),
    "/*": ("/x /x?y=1", "/x/y /"),
    "/x/*/y": ("/x/1/y", "/x/1/2/y /x//y /x/1/y/z"),
    "/x/**": ("/x /x/ /x/1/2", "/xy /"),
    "/**": ("- / /x/y", ":8443/ .evil.example/"),
    "?x=1": ("?x=1", "- ?x=2 ?x=1&y=2"),
    "/x.html": ("/x.html", "/xxhtml"),
}
# Patterns and targets that are whole URLs.
PATTERNS = {
    "https://a.example": ("", "http://a.example"),
    "https://a.example/**": ("", "https://b.a.example/"),
    "https://*.a.example": (
        "https://x.a.example https://x-1.a.example/",
        "https://a.example https://x.y.a.example https://.a.example https://xa.example"
        " https://x.a.example.evil.example https://evil.example/.a.example"
        " https://x/.a.example https://.x.a.example",
    ),
    "https://pr-*.a.example/**": (
        "https://pr-7.a.example/x",
        "https://pr-.a.example https://pr-7.b.a.example https://xpr-7.a.example",
    ),
    "http://localhost:3000/**": (
        "http://localhost:3000/x",
        "http://localhost/x http://localhost:3001 https://localhost:3000",
    ),
    "https://a+b.example/(x)": ("https://a+b.example/(x)", "https://aab.example/x"),
    "myapp://callback": (
        "myapp://callback myapp://callback?x=1",
        "myapp://other myapp://callback/x myapp2://callback myap://callback",
    ),
    "myapp://callback/**": ("myapp://callback/x", "myapp://other/x"),
    **dict.fromkeys(
        ("exp://**", "exp://**/**", "exp://**/"),
        (
            "exp://192.168.1.5:8081 exp://192.168.1.5:8081/--/callback?x=1 exp://u.expo.dev/x exp:///callback",
            "exps://192.168.1.5:8081 exp:callback https://exp/ myexp://x exp://x/../y exp://user@x",
        ),
    ),
    "com.example.app://**": ("com.example.app://login-callback/", "com.example.app2://x comXexample.app://x"),
}


def on_one_host(endings):
    return [f"https://a.example{'' if ending == '-' else ending}" for ending in endings.split()]


@cases(
    ("pattern", "allowed", "refused"),
    [
        *((f"https://a.example{end}", *map(on_one_host, urls)) for end, urls in ENDINGS.items()),
        *((pattern, *map(str.split, urls)) for pattern, urls in PATTERNS.items()),
    ],
)
def test_pattern_allows_only_matching_targets(pattern, allowed, refused):
    assert [url for url in allowed if leads_to(url, pattern) != url] == []
    assert [url for url in refused if leads_to(url, pattern) == url] == []
    assert allowed == [] or leads_to(allowed[0], "https://b.example", pattern) == allowed[0]


def test_id_that_supabase_js_adds_is_left_out_when_a_query_is_compared():
    pattern, flow_id = "https://a.example/in?app=1", "sb_flow_id=7f"
    for query in (f"?app=1&{flow_id}", f"?{flow_id}&app=1", "?app=1"):
        assert leads_to(f"https://a.example/in{query}", pattern) == f"https://a.example/in{query}"
    for query in (f"?app=2&{flow_id}", f"?app=1&x{flow_id}", f"?{flow_id}"):
        assert leads_to(f"https://a.example/in{query}", pattern) == SITE
    assert leads_to(f"https://b.example/in?app=1&{flow_id}", pattern) == SITE
