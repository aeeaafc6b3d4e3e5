"""An extension that is off serves nothing."""


def test_extension_that_is_off_has_no_templates_and_no_files(make_app):
    on, off = make_app(AUTH_CONSOLE="true"), make_app(AUTH_PAGES="false")
    names = {"console/layout.html", "account.html", "page.html"}
    assert [names & {*app.jinja_env.list_templates()} for app in (on, off)] == [names, {"page.html"}]
    statuses = [app.test_client().get("/static/console.css").status_code for app in (on, off)]
    assert statuses == [200, 404]
