"""Settings of JupyterHub before those of the command: the hub at PORT without its proxy, which would need Node.js."""

import os

from jupyterhub.proxy import Proxy


class NoProxy(Proxy):
    should_start = False

    async def get_all_routes(self):
        return {}

    async def add_route(self, routespec, target, data):
        pass

    async def delete_route(self, routespec):
        pass


c = get_config()  # type: ignore[name-defined] # noqa: F821
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{os.environ['PORT']}"
c.JupyterHub.redirect_to_server = False
