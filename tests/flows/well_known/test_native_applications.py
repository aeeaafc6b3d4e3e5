"""The documents by which a domain names the native applications that may use its passkeys."""

import pytest

from tests.support.answers import assert_error, assert_ok

FIRST, SECOND = (":".join(f"{byte:02X}" for byte in range(start, start + 32)) for start in (0, 32))
DOCUMENTS = ("apple-app-site-association", "assetlinks.json")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_of_no_application_is_not_found(client, name):
    assert_error(client.get(f"/.well-known/{name}"), 404, "not_found")


def test_apples_document_names_the_applications_of_the_setting(make_app):
    apps = ["ABCDE12345.com.example.app", "ABCDE12345.com.example.other"]
    client = make_app(AUTH_WEBAUTHN_APPLE_APPS=", ".join(apps)).test_client()
    response = client.get("/.well-known/apple-app-site-association")
    assert_ok(response, {"webcredentials": {"apps": apps}})
    assert response.headers["Cache-Control"] == "public, max-age=600"
    assert_error(client.get("/.well-known/assetlinks.json"), 404, "not_found")


def test_androids_document_names_each_application_with_all_its_certificates(make_app):
    applications = [f"com.example.app/{FIRST}", f"com.example.other/{FIRST}", f"com.example.app/{SECOND}"]
    client = make_app(AUTH_WEBAUTHN_ANDROID_APPS=",".join(applications)).test_client()
    certificates = {"com.example.app": [FIRST, SECOND], "com.example.other": [FIRST]}
    assert_ok(
        client.get("/.well-known/assetlinks.json"),
        [
            {
                "relation": ["delegate_permission/common.get_login_creds"],
                "target": {"namespace": "android_app", "package_name": package}
                | {"sha256_cert_fingerprints": fingerprints},
            }
            for package, fingerprints in certificates.items()
        ],
    )
