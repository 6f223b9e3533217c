// Reads {tex, display}, one JSON object a line; answers {mathml} or {error}. The argument is the folder of node_modules.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const temml = createRequire(join(process.argv[2], "package.json"))("temml");
for await (const line of createInterface({ input: process.stdin })) {
  const { tex, display } = JSON.parse(line);
  let answer;
  try {
    answer = { mathml: temml.renderToString(tex, { displayMode: display, throwOnError: true }) };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
