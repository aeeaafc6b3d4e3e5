import re
from typing import Any

from tests.support.answers import assert_error


def test_routes_of_the_provider_do_not_exist_while_it_is_off(make_app):
    app = make_app(AUTH_OAUTH_SERVER="false")
    client, rules = app.test_client(), app.url_map.iter_rules()
    of_provider = [rule for rule in rules if re.match(r"(/admin|/user)?/oauth/", rule.rule)]
    assert len(of_provider) > 20
    for rule in of_provider:
        for method in rule.methods - {"HEAD", "OPTIONS"}:
            body: dict[str, Any] = {} if method == "GET" else {"json": {}}
            response = client.open(re.sub(r"<.+?>", "x", rule.rule), method=method, **body)
            assert_error(response, 404, "feature_disabled", "OAuth server is disabled")
