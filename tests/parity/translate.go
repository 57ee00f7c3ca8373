package parity

import (
	"regexp"
	"strings"
)

// translate makes a statement of a peer's dialect one of SQE's. Everything that
// it changes is notation; what means something else in SQE is a difference.
func (peer *Peer) translate(sql string) string {
	if t, ok := translations[peer.Name][sql]; ok {
		return t
	}
	if peer.kind == "trino" {
		sql = quoted.ReplaceAllString(sql, "`$1`")
	}
	sql = countIf(sql)
	for _, r := range notation {
		sql = r.from.ReplaceAllString(sql, r.to)
	}
	return sql
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

var notation = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\blength\(`), "char_length("},
	{regexp.MustCompile(`\bregexp_like\((\w+), ('[^']*')\)`), "$1 RLIKE $2"},
	{regexp.MustCompile(`\bDATE'`), "DATE '"},
	{regexp.MustCompile(`\b1 / \(id - 2\)`), "1 DIV (id - 2)"}, // of integers
	{regexp.MustCompile(`(?i)\bas bigint\)`), "AS SIGNED)"},
	{regexp.MustCompile(`\b1D\b|\b1E0\b`), "1.0"},
	{regexp.MustCompile(`\bDESCRIBE TABLE `), "DESCRIBE "},
	{regexp.MustCompile(`^SHOW (NAMESPACES|SCHEMAS)( FROM lake)?$`), "SHOW DATABASES"},
	{regexp.MustCompile(`^EXPLAIN (EXTENDED|\(TYPE [^)]*\)) `), "EXPLAIN "},
	{regexp.MustCompile(`\bcurrent_user\b`), "current_user()"},
	{regexp.MustCompile(`FROM \(SELECT \* FROM sem.orders\)`), "$0 AS t"},
	{regexp.MustCompile(`\bsem\.copy\b`), "sem.`copy`"},
	{regexp.MustCompile(` USING iceberg\b`), ""},
	{regexp.MustCompile(`^(CREATE|DROP) (NAMESPACE|SCHEMA) `), "$1 DATABASE "},
	{regexp.MustCompile(`^SHOW COLUMNS IN `), "SHOW COLUMNS FROM "},
	{regexp.MustCompile(`^SHOW CREATE VIEW `), "SHOW CREATE TABLE "},
	{regexp.MustCompile(`\bspark_catalog\.default\.pv\b`), "`default`.pv"},
	{regexp.MustCompile(`^CREATE VIEW (\S+) SECURITY INVOKER `), "CREATE SQL SECURITY INVOKER VIEW $1 "},
	{regexp.MustCompile(`^ALTER TABLE (\S+) EXECUTE optimize$`), "CALL system.rewrite_data_files('$1')"},
	{regexp.MustCompile(`\b(sem\.orders) VERSION AS OF`), "$1 FOR VERSION AS OF"},
}

// translations are statements whose notation no rule reaches.
var translations = map[string]map[string]string{
	"spark": {
		"SELECT file_format FROM sem.orders.files":                      "SELECT file_format FROM sem.`orders$files`",
		"SELECT count(*) FROM sem.orders.history":                       "SELECT count(*) FROM sem.`orders$history`",
		"SELECT readable_metrics.ssn.lower_bound FROM sem.orders.files": "SELECT * FROM sem.`orders$files`",
	},
	"trino": {
		"SELECT ssn FROM sem.orders UNION SELECT ssn FROM sem.people ORDER BY 1": "SELECT * FROM (SELECT ssn FROM sem.orders UNION SELECT ssn FROM sem.people) u ORDER BY ssn IS NULL, ssn",
		"SELECT s, count(*) FROM masks.types GROUP BY s ORDER BY s LIMIT 3":      "SELECT s, count(*) FROM masks.types GROUP BY s ORDER BY s IS NULL, s LIMIT 3",
		"SELECT id FROM masks.types ORDER BY s DESC, id LIMIT 4":                 "SELECT id FROM masks.types ORDER BY s IS NULL, s DESC, id LIMIT 4",
	},
}

// countIf writes count_if(x) as COUNT(CASE WHEN x THEN 1 END).
func countIf(sql string) string {
	const name = "count_if("
	for {
		start := strings.Index(sql, name)
		if start < 0 {
			return sql
		}
		depth, end := 1, start+len(name)
		for ; depth > 0; end++ {
			switch sql[end] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		sql = sql[:start] + "COUNT(CASE WHEN " + sql[start+len(name):end-1] + " THEN 1 END)" + sql[end:]
	}
}
