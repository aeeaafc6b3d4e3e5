// An application of one page, whose users sign in by Auth.js. Its provider is in the environment, as JavaScript.
import { ExpressAuth, getSession } from "@auth/express";
import express from "express";

const { PORT, PROVIDER } = process.env;
const { default: provider } = await import(`data:text/javascript,export default ${encodeURIComponent(PROVIDER)}`);
const auth = { providers: [provider], secret: crypto.randomUUID(), trustHost: true };
const app = express();
app.use("/auth", ExpressAuth(auth));
app.get("/", async (request, response) => response.json(await getSession(request, auth)));
app.listen(Number(PORT), "127.0.0.1");
