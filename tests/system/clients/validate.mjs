// Reads pages by their names as JSON, and prints what the HTML standard says against them.
import { HtmlValidate, StaticConfigLoader } from "html-validate";
import { json } from "node:stream/consumers";

const checker = new HtmlValidate(new StaticConfigLoader({ root: true, extends: ["html-validate:standard"] }));
const faults = [];
for (const [name, markup] of Object.entries(await json(process.stdin))) {
  const report = await checker.validateString(markup);
  for (const { messages } of report.results) {
    for (const { ruleId, message, line } of messages) faults.push(`${name}, line ${line}: ${message} (${ruleId})`);
  }
}
console.log(JSON.stringify(faults));
