package rangerclient

import (
	"fmt"
	"strconv"
	"testing"

	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// many makes a state of about n policies, over n/10 tables of the data service
// and as many of the object service, and a table of 200 columns with 20 masks.
func many(b *testing.B, n int) (*State, *plan.Table) {
	f := newBuild(b)
	for i := range n {
		db, tab := fmt.Sprintf("db%d", i%10), fmt.Sprintf("t%d", i/10)
		switch {
		case i%2 == 0:
			f.object("root=POLARIS catalog=c namespace="+db+" table="+tab, item("role reader", "table-data-read"), item("user"+strconv.Itoa(i)+" group g"+strconv.Itoa(i%50), "table-data-write"))
		case i%6 == 1:
			f.filter(&f.data, "database="+db+" table="+tab, "", "role reader: region = 'EU'", "public: 1 = 0")
		default:
			f.mask("database="+db+" table="+tab+" column=c"+strconv.Itoa(i%200), "role steward: MASK_NONE", "role reader: MASK", "public: MASK_NULL")
		}
	}
	f.object("root=POLARIS catalog=c namespace=bench table=*", item("role reader", "table-data-read"))
	f.filter(&f.data, "database=bench table=wide", "", "role steward: ", "role reader: region = 'EU'")
	var names []string
	for i := range 200 {
		names = append(names, "c"+strconv.Itoa(i))
		if i%10 == 0 {
			f.mask("database=bench table=wide column=c"+strconv.Itoa(i), "role steward: MASK_NONE", "role reader: MASK_HASH", "public: MASK_NULL")
		}
	}
	f.tagMask("PII", "role steward: MASK_NONE", "public: MASK_NULL")
	tab := table("c.bench.wide", names...)
	tab.Tags = map[int][]plan.Tag{5: {{Name: "PII"}}, 150: {{Name: "PII"}}}
	return f.state(Options{}), tab
}

var reader = identity.Principal{Name: "user7", Groups: []string{"g1", "g2", "g3"}, Roles: []string{"reader", "x", "y"}}

func BenchmarkAuthorize(b *testing.B) {
	for _, n := range []int{500, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			st, _ := many(b, n)
			for _, x := range []struct {
				name string
				o    policy.Object
				want bool
			}{
				{"granted", policy.Object{Catalog: "c", Namespace: []string{"bench"}, Name: "wide"}, true},
				{"nothing", policy.Object{Catalog: "c", Namespace: []string{"db9"}, Name: "nowhere"}, false},
			} {
				b.Run(x.name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if st.Authorize(reader, x.o, policy.TableDataRead).Allow != x.want {
							b.Fatal("wrong decision")
						}
					}
				})
			}
		})
	}
}

func BenchmarkRestrict(b *testing.B) {
	for _, n := range []int{500, 10000} {
		b.Run(strconv.Itoa(n)+"/200columns", func(b *testing.B) {
			st, tab := many(b, n)
			b.ReportAllocs()
			for b.Loop() {
				r, err := st.Restrict(reader, tab)
				if err != nil || len(r.Columns) != 22 || len(r.Filters) != 1 {
					b.Fatalf("%d %v", len(r.Columns), err)
				}
			}
		})
	}
}
