package parity

import "slices"

// maskUser is a user for whom every column of the mask tables has one mask.
type maskUser struct{ user, kind, expression string }

var roleMembers = map[string][]string{
	"sqe_admin": {"carol", "admin"}, "engineer": {"bob", "carol"}, "analyst": {"alice", "bob", "carol"},
	"fraud_analyst": {"erin"}, "bank_auditor": {"frank"},
}

var groupMembers = map[string][]string{"g_emea": {"s_group"}, "g_both": {"s_group", "s_group2"}}

var tagged = map[string][][2]string{
	"ACCOUNT": {{"customers", "phone"}, {"payments", "counterparty_iban"}},
	"SPI":     {{"customers", "nationality"}}, "IDENTITY": {{"customers", "national_id"}, {"customers", "full_name"}},
}

func (peer *Peer) maskUsers() []maskUser {
	return []maskUser{
		{"m_mask", "MASK", ""},
		{"m_last4", "MASK_SHOW_LAST_4", ""},
		{"m_first4", "MASK_SHOW_FIRST_4", ""},
		{"m_hash", "MASK_HASH", ""},
		{"m_null", "MASK_NULL", ""},
		{"m_none", "MASK_NONE", ""},
		{"m_year", "MASK_DATE_SHOW_YEAR", ""},
		{"m_custom", "CUSTOM", "concat('c:', " + peer.castText + ")"},
		{"m_const", "CUSTOM", "'XX'"},
		{"m_empty", "CUSTOM", ""},
		{"m_type", "CUSTOM", "concat('9', substr(" + peer.castText + ", 2))"},
	}
}

func only(list []maskUser, keep func(maskUser) bool) (items []object) {
	for _, m := range list {
		if keep(m) {
			items = append(items, maskItem(users(m.user), m.kind, m.expression))
		}
	}
	return items
}

// Spark is Spark 3.5.7 with Kyuubi AuthZ 1.12.0.
var Spark = &Peer{
	Name: "spark", kind: "hive", castText: "cast({col} as char)", currentUser: "current_user()",
	maskedTypes: func(p *Policies) {
		years := []string{"s", "dt", "ts", "tn"}
		for _, c := range []string{"s", "i", "l", "d", "f", "r", "dt", "ts", "tn", "b", "bin"} {
			items := only(p.peer.maskUsers(), func(m maskUser) bool {
				return m.user != "m_type" && (m.user != "m_year" || slices.Contains(years, c))
			})
			if c == "i" {
				items = append(items, maskItem(users("m_bad"), "MASK_DATE_SHOW_YEAR", ""))
			}
			p.Mask("masks", "types", c, items...)
		}
		for _, c := range []string{"a", "st", "m"} {
			p.Mask("masks", "nested", c, only(p.peer.maskUsers(), func(m maskUser) bool {
				return m.user != "m_type" && (c == "a" || !slices.Contains([]string{"m_mask", "m_last4", "m_first4", "m_year"}, m.user))
			})...)
		}
	},
}

// Trino is Trino 476 with Ranger's client 2.9.0.
var Trino = &Peer{Name: "trino", kind: "trino", castText: "cast({col} as char)", currentUser: "current_user()", maskedTypes: trinoMasks}

// TrinoLive reads the same policies as SQE, so that their texts are such as both
// read: a cast to text is written differently by the two.
var TrinoLive = &Peer{Name: "trino", kind: "trino", castText: "{col}", currentUser: "current_user", maskedTypes: trinoMasks}

// trinoMasks are masks on a table for each column: a mask that does not fit fails
// its whole table there.
func trinoMasks(p *Policies) {
	texts := []string{"m_mask", "m_last4", "m_hash", "m_custom"}
	for _, c := range []string{"s", "i", "l", "d", "f", "r", "dt", "ts", "tn", "b", "bin", "a", "st", "m"} {
		p.Mask("masks", "c_"+c, c, only(p.peer.maskUsers(), func(maskUser) bool { return true })...)
		if c == "a" || c == "st" || c == "m" {
			continue
		}
		items := only(p.peer.maskUsers(), func(m maskUser) bool {
			return m.kind == "MASK_NULL" || m.kind == "MASK_NONE" || (c == "s" && slices.Contains(texts, m.user))
		})
		if c == "i" {
			items = append(items, maskItem(users("m_bad"), "MASK_DATE_SHOW_YEAR", ""))
		}
		p.Mask("masks", "types", c, items...)
	}
}

// Policies are the policies of the captured answers.
func (peer *Peer) Policies() *Policies {
	p := &Policies{peer: peer}
	everything := who{users: []string{"admin"}, roles: []string{"sqe_admin"}}
	changes := []string{"update", "create", "drop", "alter"}
	if peer.kind == "trino" {
		changes = []string{"insert", "delete", "create", "drop", "alter"}
	}
	for _, database := range []string{"bank", "masks", "sem", "default"} {
		p.Read(everything, database, "*")
		p.Change(everything, database, []string{"*"}, changes...)
		p.Read(users("raw"), database, "*")
	}

	// Bank: each role's view of it.
	p.Read(roles("analyst", "engineer", "fraud_analyst", "bank_auditor"), "bank", "customers", "payments")
	for column, kind := range map[string]string{
		"risk_score": "MASK_NULL", "national_id": "MASK_SHOW_LAST_4", "iban": "MASK_HASH", "dob": "MASK_DATE_SHOW_YEAR", "full_name": "MASK",
	} {
		p.Mask("bank", "customers", column, maskItem(roles("engineer"), kind, ""))
	}
	p.Mask("bank", "payments", "counterparty_iban", maskItem(users("erin"), "MASK_HASH", "")) // her tag mask wins
	p.Filter("bank", "customers", filterItem(roles("engineer"), "residency_region = 'EU'"))
	p.Filter("bank", "payments", filterItem(roles("bank_auditor"), "booked_at >= DATE '2019-01-01'"))
	p.TagMask(roles("fraud_analyst"), "ACCOUNT", "CUSTOM", "'REDACTED'")
	p.TagMask(roles("fraud_analyst"), "SPI", "MASK_NULL", "")
	p.TagMask(roles("fraud_analyst"), "IDENTITY", "MASK_NULL", "")

	// Masks: one user a mask type.
	everyMask := []string{"m_bad"}
	for _, m := range peer.maskUsers() {
		everyMask = append(everyMask, m.user)
	}
	p.Read(users(everyMask...), "masks", "*")
	peer.maskedTypes(p)

	// Sem: one user a question.
	readers := users("s_same", "s_null", "s_unproj", "s_join", "s_expr", "s_sub", "s_subok", "s_user", "s_two", "s_twopol", "s_bad",
		"s_badmask", "s_badtype", "s_order", "s_write", "s_deny", "s_filter", "s_first", "s_other", "s_both", "s_group", "s_group2",
		"s_own", "s_maskfilter", "s_meta", "s_attr")
	p.Read(readers, "sem", "orders", "people", "allowed", "v_orders", "v_invoker", "target", "copy", "dml", "dmlf", "dmlm", "pub", "part", "grouped")
	p.ReadColumns(users("s_cols", "s_nullcol"), "sem", "orders", []string{"id", "region"}, []string{"amount", "ssn", "email", "signed_on"})
	p.Read(users("s_base"), "sem", "orders")
	p.Withhold(users("s_deny"), "sem", "orders", "ssn")
	p.Change(users("s_write"), "sem", []string{"target", "copy", "dml", "dmlf", "dmlm"}, changes...)
	if peer.kind == "hive" {
		p.Read(users("s_view", "s_both"), "default", "pv")
		p.Read(users("s_view"), "sem", "v_orders")
		p.Read(users("s_base"), "sem", "v_orders") // a view has no rights of its own there
	} else {
		p.Read(users("s_view"), "sem", "v_orders", "v_invoker")
		p.Read(users("s_own", "s_view", "s_same"), "sem", "v_own", "v_own2")
		p.Change(users("s_own"), "sem", []string{"v_own", "v_own2"}, "create", "drop")
	}
	p.orders()
	p.others()
	if peer.kind == "trino" {
		p.trinoRights()
	}
	return p
}

// trinoRights are those without which nobody can do anything in Trino. SQE does
// not ask for them.
func (p *Policies) trinoRights() {
	give := func(w who, resources object, types ...string) {
		p.add(&p.Data, accessPolicy, p.peer.kind, resources, object{"policyItems": []object{item(w, types, nil)}})
	}
	everybody := groups("public")
	give(everybody, object{"queryid": values("*")}, "execute")
	give(users("{USER}"), object{"trinouser": values("*")}, "impersonate")
	give(everybody, object{"catalog": values(Catalog, "system")}, "use", "show")
	give(everybody, object{"catalog": values("*"), "schema": values("information_schema"), "table": values("*"), "column": values("*")}, "select", "show")
	// The wildcard that is usual names the metadata tables of the table too.
	give(users("s_meta"), object{"catalog": values(Catalog), "schema": values("sem"), "table": values("part*"), "column": values("*")}, "select")
}

func (p *Policies) orders() {
	ssn := []object{
		maskItem(users("s_same", "s_join", "s_write", "s_base", "s_view", "s_both", "s_filter", "s_own"), "MASK_SHOW_LAST_4", ""),
		maskItem(users("s_nullcol"), "MASK_NULL", ""),
		maskItem(users("s_expr"), "CUSTOM", "concat(region, ':', {col})"),
		maskItem(users("s_sub"), "CUSTOM", "(SELECT max(name) FROM lake.sem.people)"),
		maskItem(users("s_badmask"), "CUSTOM", "no_such_function({col})"),
	}
	amount, region := "MASK_HASH", []object{maskItem(users("s_null"), "MASK_NULL", "")}
	filtered := []string{"s_null", "s_unproj", "s_base", "s_both", "s_write"}
	rest := []object{}
	if p.peer.kind == "trino" {
		ssn = append(ssn, maskItem(users("s_badtype"), "CUSTOM", "length({col})"),
			maskItem(users("s_user"), "CUSTOM", "concat("+p.peer.currentUser+", ':', {col})"),
			maskItem(users("s_maskfilter"), "CUSTOM", "if(region = 'EU', {col}, NULL)"))
		amount = "MASK_NULL"
		region = append(region, maskItem(users("s_maskfilter"), "CUSTOM", "'masked'"))
		filtered = append(filtered, "s_own", "s_maskfilter")
		rest = append(rest, filterItem(users("s_attr"), "region = '${{USER.region}}'"))
	}
	ssn = append(ssn, maskItem(users("s_first"), "MASK_NONE", ""), maskItem(users("s_first", "s_order"), "MASK_NULL", ""),
		maskItem(users("s_order"), "MASK_HASH", ""))
	p.Mask("sem", "orders", "ssn", ssn...)
	p.Mask("sem", "orders", "region", region...)
	p.Mask("sem", "orders", "amount", maskItem(users("s_expr"), "CUSTOM", "round({col} / 7, 2)"), maskItem(users("s_write"), amount, ""))
	p.Filter("sem", "orders", append([]object{
		filterItem(users("s_same"), "ssn = '111-11-1111'"),
		filterItem(users(filtered...), "region = 'EU'"),
		filterItem(users("s_sub", "s_subok"), "region IN (SELECT region FROM lake.sem.allowed)"),
		filterItem(users("s_user"), "email = concat(substr("+p.peer.currentUser+", 1, 0), 'b@x')"),
		filterItem(users("s_two"), "id = 1"), filterItem(users("s_two"), "id = 2"),
		filterItem(users("s_bad"), "no_such_column = 1"),
		filterItem(users("s_filter"), "region <> 'EU'"),
		filterItem(users("s_other"), "id >= 2 OR id = 1 AND false"),
	}, rest...)...)
}

func (p *Policies) others() {
	p.Mask("sem", "pub", "v", maskItem(users("s_first", "admin"), "MASK_NONE", ""), maskItem(groups("public"), "CUSTOM", "'public'"))
	p.Mask("sem", "people", "ssn", maskItem(users("s_join"), "MASK_SHOW_LAST_4", ""))
	for _, v := range [][2]string{{"sem", "v_orders"}, {"sem", "v_invoker"}, {"default", "pv"}} {
		p.Mask(v[0], v[1], "region", maskItem(users("s_view", "s_both"), "CUSTOM", "lower({col})"))
		p.Filter(v[0], v[1], filterItem(users("s_view", "s_both"), "id = 2"))
	}
	p.Mask("sem", "dml", "ssn", maskItem(users("s_write"), "MASK_SHOW_LAST_4", ""))
	p.Filter("sem", "dml", filterItem(users("s_write"), "region = 'EU'"))
	if p.peer.kind != "trino" {
		return
	}
	p.Mask("sem", "dmlm", "ssn", maskItem(users("s_write"), "MASK_SHOW_LAST_4", ""))
	p.Filter("sem", "dmlf", filterItem(users("s_write"), "region = 'EU'"))
	p.Mask("sem", "grouped", "v", maskItem(groups("g_emea"), "MASK_SHOW_LAST_4", ""), maskItem(groups("g_both"), "MASK_NULL", ""))
	p.Filter("sem", "grouped", filterItem(groups("g_both"), "region = 'EU'"))
	p.Mask("sem", "part", "ssn", maskItem(users("s_same", "s_meta"), "MASK_SHOW_LAST_4", ""))
	p.Filter("sem", "part", filterItem(users("s_same", "s_meta"), "region = 'EU'"))
	p.Filter("sem", "order*", filterItem(users("s_twopol"), "id = 3"))
	p.Filter("sem", "orde*", filterItem(users("s_twopol"), "id = 1"))
}
