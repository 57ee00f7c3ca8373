package engine_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/engine/parse"
	"sqe/plan"
)

// TestDocumentedFiles: the examples of the manual about files run, one after the
// other.
func TestDocumentedFiles(t *testing.T) {
	l := openLoader(t, nil)
	s := l.client("root")
	l.sends("trips.csv", "id,city,started\n1,Gent,2024-02-29 12:00:00\n2,Zürich,2024-03-01 00:00:00\n3,,2024-03-02 10:11:12.5\n")
	l.sends("fares.txt", "Gent;2.5;x\n\"a;b\";3;\n")
	l.file("trips.parquet", parquetOf(t, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: plan.Int64}, {Name: "city", Type: plan.String, Nullable: true}, {Name: "started", Type: plan.Timestamp, Nullable: true},
	}, nil), `[{"id":4,"city":"Gent","started":"2024-03-02 10:11:12"}]`))
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(between(t, manual(t), "## Files\n", "\n## "), -1)
	n := 0
	for _, b := range blocks {
		for rest := b[1]; strings.TrimSpace(rest) != ""; n++ {
			text := rest
			_, after, err := parse.Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			l.do(s, strings.TrimSuffix(strings.TrimSpace(text[:len(text)-len(after)]), ";"))
			rest = after
		}
	}
	if n < 6 {
		t.Errorf("%d examples ran", n)
	}
	must(t, s, "SELECT id, city, count(*) FROM trips GROUP BY id, city ORDER BY id", "1|Gent|1\n2|Zürich|1\n3|NULL|1\n4|Gent|2")
	must(t, s, "SELECT * FROM fares ORDER BY city, fare", "Gent|2.5\na;b|NULL\na;b|3")
}
