"""Documents of clients that are off are not imported."""

import subprocess
import sys

from tests.support.documents import opened_page
from tests.support.pages import Visitor

pytest_plugins = ["tests.support.document_fixtures"]


def test_documents_are_off_by_default_and_not_imported(web, client, alice, app):
    assert opened_page(Visitor(app).with_session_of(alice)).status == 400
    metadata = client.get("/.well-known/oauth-authorization-server").json
    assert (web.looked_up, "client_id_metadata_document_supported" in metadata) == ([], False)
    code = "import sys, auth.web.application, auth.extensions.openid.api.authorization; print('auth.extensions.openid.documents' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
