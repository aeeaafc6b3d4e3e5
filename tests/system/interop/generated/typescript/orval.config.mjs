export default {
  latchkey: {
    input: process.env.OPENAPI,
    output: { target: "client.ts", client: "fetch", baseUrl: process.env.LATCHKEY_URL },
  },
};
