// Runs the cases of clients_test.go with node's mysql2. Statements with
// parameters go through server-side prepared statements.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [host, port, user, password, modules] = process.argv.slice(2);
const mysql = createRequire(modules + "/")("mysql2/promise");
const connection = await mysql.createConnection({
  host, port: Number(port), user, password,
  ssl: { rejectUnauthorized: false },
  multipleStatements: true, dateStrings: true, supportBigNumbers: true, bigNumberStrings: true, rowsAsArray: true,
});

const text = (v) => {
  if (v === null || v === undefined) return null;
  if (Buffer.isBuffer(v)) {
    const s = v.toString("utf8");
    return Buffer.from(s, "utf8").equals(v) ? s : "0x" + v.toString("hex");
  }
  return typeof v === "object" ? JSON.stringify(v) : String(v);
};

const answers = [];
for (const c of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const [rows, fields] = c.params?.length ? await connection.execute(c.sql, c.params) : await connection.query(c.sql);
    let all = Array.isArray(rows) ? rows : [];
    if (c.multi) all = all.flat();
    answers.push({ columns: (fields ?? []).flat().map((f) => f?.name), rows: all.map((r) => r.map(text)) });
  } catch (e) {
    answers.push({ errno: e.errno, error: e.message });
  }
}
await connection.end();
process.stdout.write(JSON.stringify(answers));
