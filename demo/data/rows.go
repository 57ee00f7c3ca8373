package data

import (
	"github.com/apache/iceberg-go"

	"sqe/plan"
)

// sample is one table: its rows are appended snapshot by snapshot, then the rows
// of remove are deleted.
type sample struct {
	name, comment string
	schema        *iceberg.Schema
	partition     []iceberg.PartitionField
	props         map[string]string
	tags          map[int][]plan.Tag
	appends       []string
	remove        iceberg.BooleanExpression
}

var pii = []plan.Tag{{Name: "PII"}}

var tables = []sample{
	{
		name: "customers", comment: "customers of the bank",
		schema: iceberg.NewSchema(0,
			iceberg.NestedField{ID: 1, Name: "cust_id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
			column(2, "full_name", iceberg.PrimitiveTypes.String),
			column(3, "national_id", iceberg.PrimitiveTypes.String),
			column(4, "dob", iceberg.PrimitiveTypes.Date),
			column(5, "iban", iceberg.PrimitiveTypes.String),
			column(6, "nationality", iceberg.PrimitiveTypes.String),
			column(7, "residency_region", iceberg.PrimitiveTypes.String),
			column(8, "branch", iceberg.PrimitiveTypes.String),
			column(9, "consent_marketing", iceberg.PrimitiveTypes.Bool),
			column(10, "pep_flag", iceberg.PrimitiveTypes.Bool),
			column(11, "risk_score", iceberg.PrimitiveTypes.Int32),
			column(12, "phone", iceberg.PrimitiveTypes.String),
		),
		props:   map[string]string{"write.delete.mode": "merge-on-read"},
		tags:    map[int][]plan.Tag{3: pii, 5: pii},
		appends: []string{euCustomers, otherCustomers},
		remove:  iceberg.EqualTo(iceberg.Reference("cust_id"), int64(13)),
	},
	{
		name: "payments", comment: "payments of the customers, partitioned by year",
		schema: iceberg.NewSchema(0,
			iceberg.NestedField{ID: 1, Name: "pay_id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
			column(2, "cust_id", iceberg.PrimitiveTypes.Int64),
			column(3, "booked_at", iceberg.PrimitiveTypes.Date),
			column(4, "amount_eur", iceberg.PrimitiveTypes.Float64),
			column(5, "counterparty_iban", iceberg.PrimitiveTypes.String),
			column(6, "counterparty_country", iceberg.PrimitiveTypes.String),
			column(7, "channel", iceberg.PrimitiveTypes.String),
			column(8, "aml_alert", iceberg.PrimitiveTypes.Bool),
			column(9, "mcc", iceberg.PrimitiveTypes.Int32),
		),
		partition: []iceberg.PartitionField{{SourceIDs: []int{3}, FieldID: 1000, Name: "booked_at_year", Transform: iceberg.YearTransform{}}},
		appends:   []string{paymentsTo2019, paymentsTo2022, paymentsTo2026},
	},
	{
		name: "branch_access", comment: "which user works for which branch",
		schema: iceberg.NewSchema(0,
			column(1, "username", iceberg.PrimitiveTypes.String),
			column(2, "branch", iceberg.PrimitiveTypes.String),
		),
		appends: []string{branchAccess},
	},
	{
		name: "profiles", comment: "contact data and preferences of customers",
		schema: iceberg.NewSchema(0,
			iceberg.NestedField{ID: 1, Name: "cust_id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
			column(2, "contact", &iceberg.StructType{FieldList: []iceberg.NestedField{
				column(5, "email", iceberg.PrimitiveTypes.String),
				column(6, "phone", iceberg.PrimitiveTypes.String),
				column(7, "address", &iceberg.StructType{FieldList: []iceberg.NestedField{
					column(8, "city", iceberg.PrimitiveTypes.String),
					column(9, "postcode", iceberg.PrimitiveTypes.String),
					column(10, "country", iceberg.PrimitiveTypes.String),
				}}),
			}}),
			column(3, "tags", &iceberg.ListType{ElementID: 11, Element: iceberg.PrimitiveTypes.String}),
			column(4, "prefs", &iceberg.MapType{
				KeyID: 12, KeyType: iceberg.PrimitiveTypes.String,
				ValueID: 13, ValueType: iceberg.PrimitiveTypes.String,
			}),
		),
		appends: []string{profiles},
	},
}

func column(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

const euPaymentsSQL = `SELECT p.pay_id, p.cust_id, p.booked_at, p.amount_eur, p.counterparty_country, p.channel
FROM payments p JOIN customers c ON c.cust_id = p.cust_id
WHERE c.residency_region = 'EU'`

var euPaymentsSchema = iceberg.NewSchema(0,
	column(1, "pay_id", iceberg.PrimitiveTypes.Int64),
	column(2, "cust_id", iceberg.PrimitiveTypes.Int64),
	column(3, "booked_at", iceberg.PrimitiveTypes.Date),
	column(4, "amount_eur", iceberg.PrimitiveTypes.Float64),
	column(5, "counterparty_country", iceberg.PrimitiveTypes.String),
	column(6, "channel", iceberg.PrimitiveTypes.String),
)

// The customer 13 is deleted again.
const euCustomers = `[
	{"cust_id": 1, "full_name": "Sanne de Vries", "national_id": "184729103", "dob": "1978-03-14", "iban": "NL91ABNA0417164300", "nationality": "NL", "residency_region": "EU", "branch": "AMS-01", "consent_marketing": true, "pep_flag": false, "risk_score": 12, "phone": "+31-20-555-0101"},
	{"cust_id": 2, "full_name": "Marek Kowalski", "national_id": "295830214", "dob": "1985-07-02", "iban": "PL27114020040000300201355387", "nationality": "PL", "residency_region": "EU", "branch": "WAW-02", "consent_marketing": false, "pep_flag": false, "risk_score": 34, "phone": "+48-22-555-0102"},
	{"cust_id": 3, "full_name": "Elena Rossi", "national_id": "306941325", "dob": "1969-11-23", "iban": "IT60X0542811101000000123456", "nationality": "IT", "residency_region": "EU", "branch": "MIL-01", "consent_marketing": true, "pep_flag": false, "risk_score": 8, "phone": "+39-02-555-0103"},
	{"cust_id": 4, "full_name": "Johan Andersson", "national_id": "417052436", "dob": "1991-01-30", "iban": "SE4550000000058398257466", "nationality": "SE", "residency_region": "EU", "branch": "STO-01", "consent_marketing": false, "pep_flag": false, "risk_score": 21, "phone": "+46-8-555-0104"},
	{"cust_id": 5, "full_name": "Fatima El Amrani", "national_id": "528163547", "dob": "1982-06-17", "iban": "FR7630006000011234567890189", "nationality": "MA", "residency_region": "EU", "branch": "PAR-03", "consent_marketing": true, "pep_flag": false, "risk_score": 47, "phone": "+33-1-555-0105"},
	{"cust_id": 6, "full_name": "Dieter Krause", "national_id": "639274658", "dob": "1957-09-05", "iban": "DE89370400440532013000", "nationality": "DE", "residency_region": "EU", "branch": "BER-01", "consent_marketing": false, "pep_flag": true, "risk_score": 76, "phone": "+49-30-555-0106"},
	{"cust_id": 7, "full_name": "Ana Silva", "national_id": "740385769", "dob": "1996-04-11", "iban": "PT50000201231234567890154", "nationality": "PT", "residency_region": "EU", "branch": "LIS-02", "consent_marketing": true, "pep_flag": false, "risk_score": 15, "phone": "+351-21-555-0107"},
	{"cust_id": 13, "full_name": "Test Customer", "national_id": "000000000", "dob": "2000-01-01", "iban": "NL00TEST0000000000", "nationality": "NL", "residency_region": "EU", "branch": "AMS-01", "consent_marketing": false, "pep_flag": false, "risk_score": 0, "phone": "+31-20-555-0113"}
]`

const otherCustomers = `[
	{"cust_id": 8, "full_name": "Michael Brennan", "national_id": "851496870", "dob": "1974-12-08", "iban": "US64SVBKUS6S3300958879", "nationality": "US", "residency_region": "NON_EU", "branch": "NYC-01", "consent_marketing": false, "pep_flag": false, "risk_score": 29, "phone": "+1-212-555-0108"},
	{"cust_id": 9, "full_name": "Wei Zhang", "national_id": "962507981", "dob": "1988-02-26", "iban": "SG12DBSS1234567890", "nationality": "SG", "residency_region": "NON_EU", "branch": "SIN-01", "consent_marketing": true, "pep_flag": false, "risk_score": 52, "phone": "+65-6555-0109"},
	{"cust_id": 10, "full_name": "Olga Petrova", "national_id": "073618092", "dob": "1980-08-19", "iban": "CH9300762011623852957", "nationality": "RU", "residency_region": "NON_EU", "branch": "ZRH-02", "consent_marketing": false, "pep_flag": true, "risk_score": 91, "phone": "+41-44-555-0110"},
	{"cust_id": 11, "full_name": "Rajesh Nair", "national_id": "184729203", "dob": "1993-05-04", "iban": "AE070331234567890123456", "nationality": "IN", "residency_region": "NON_EU", "branch": "DXB-01", "consent_marketing": true, "pep_flag": false, "risk_score": 38, "phone": "+971-4-555-0111"},
	{"cust_id": 12, "full_name": "Grace Mensah", "national_id": "295830314", "dob": "1965-10-21", "iban": "GB29NWBK60161331926819", "nationality": "GH", "residency_region": "NON_EU", "branch": "LON-04", "consent_marketing": false, "pep_flag": false, "risk_score": 63, "phone": "+233-30-555-0112"}
]`

const paymentsTo2019 = `[
	{"pay_id": 1, "cust_id": 1, "booked_at": "2016-05-12", "amount_eur": 250.0, "counterparty_iban": "DE89370400440532013000", "counterparty_country": "DE", "channel": "SEPA", "aml_alert": false, "mcc": 5411},
	{"pay_id": 2, "cust_id": 3, "booked_at": "2017-02-28", "amount_eur": 1200.0, "counterparty_iban": "IT60X0542811101000000123456", "counterparty_country": "IT", "channel": "SEPA", "aml_alert": false, "mcc": 5812},
	{"pay_id": 3, "cust_id": 6, "booked_at": "2017-11-03", "amount_eur": 8400.0, "counterparty_iban": "CH9300762011623852957", "counterparty_country": "CH", "channel": "SWIFT", "aml_alert": true, "mcc": 6012},
	{"pay_id": 4, "cust_id": 8, "booked_at": "2018-01-19", "amount_eur": 340.0, "counterparty_iban": "US64SVBKUS6S3300958879", "counterparty_country": "US", "channel": "SWIFT", "aml_alert": false, "mcc": 4111},
	{"pay_id": 5, "cust_id": 10, "booked_at": "2018-06-30", "amount_eur": 19500.0, "counterparty_iban": "CH9300762011623852957", "counterparty_country": "CH", "channel": "SWIFT", "aml_alert": true, "mcc": 6012},
	{"pay_id": 6, "cust_id": 12, "booked_at": "2018-09-14", "amount_eur": 76.0, "counterparty_iban": "GB29NWBK60161331926819", "counterparty_country": "GB", "channel": "CARD", "aml_alert": false, "mcc": 5814},
	{"pay_id": 7, "cust_id": 1, "booked_at": "2019-03-02", "amount_eur": 45.0, "counterparty_iban": "NL91ABNA0417164300", "counterparty_country": "NL", "channel": "IDEAL", "aml_alert": false, "mcc": 5411},
	{"pay_id": 8, "cust_id": 2, "booked_at": "2019-07-21", "amount_eur": 990.0, "counterparty_iban": "PL27114020040000300201355387", "counterparty_country": "PL", "channel": "SEPA", "aml_alert": false, "mcc": 5732}
]`

const paymentsTo2022 = `[
	{"pay_id": 9, "cust_id": 4, "booked_at": "2020-01-08", "amount_eur": 150.0, "counterparty_iban": "SE4550000000058398257466", "counterparty_country": "SE", "channel": "CARD", "aml_alert": false, "mcc": 5812},
	{"pay_id": 10, "cust_id": 5, "booked_at": "2020-04-17", "amount_eur": 2750.0, "counterparty_iban": "FR7630006000011234567890189", "counterparty_country": "FR", "channel": "SEPA", "aml_alert": false, "mcc": 6300},
	{"pay_id": 11, "cust_id": 6, "booked_at": "2020-09-29", "amount_eur": 12000.0, "counterparty_iban": "AE070331234567890123456", "counterparty_country": "AE", "channel": "SWIFT", "aml_alert": true, "mcc": 6012},
	{"pay_id": 12, "cust_id": 7, "booked_at": "2021-02-11", "amount_eur": 65.0, "counterparty_iban": "PT50000201231234567890154", "counterparty_country": "PT", "channel": "IDEAL", "aml_alert": false, "mcc": 5411},
	{"pay_id": 13, "cust_id": 9, "booked_at": "2021-06-05", "amount_eur": 3300.0, "counterparty_iban": "SG12DBSS1234567890", "counterparty_country": "SG", "channel": "SWIFT", "aml_alert": false, "mcc": 4722},
	{"pay_id": 14, "cust_id": 10, "booked_at": "2021-10-23", "amount_eur": 27400.0, "counterparty_iban": "CH9300762011623852957", "counterparty_country": "CH", "channel": "SWIFT", "aml_alert": true, "mcc": 6012},
	{"pay_id": 15, "cust_id": 11, "booked_at": "2022-01-30", "amount_eur": 480.0, "counterparty_iban": "AE070331234567890123456", "counterparty_country": "AE", "channel": "CARD", "aml_alert": false, "mcc": 5541},
	{"pay_id": 16, "cust_id": 12, "booked_at": "2022-05-19", "amount_eur": 1150.0, "counterparty_iban": "GB29NWBK60161331926819", "counterparty_country": "GB", "channel": "SEPA", "aml_alert": false, "mcc": 5912},
	{"pay_id": 17, "cust_id": 2, "booked_at": "2022-11-07", "amount_eur": 210.0, "counterparty_iban": "PL27114020040000300201355387", "counterparty_country": "PL", "channel": "IDEAL", "aml_alert": false, "mcc": 5814}
]`

const paymentsTo2026 = `[
	{"pay_id": 18, "cust_id": 3, "booked_at": "2023-03-15", "amount_eur": 5600.0, "counterparty_iban": "IT60X0542811101000000123456", "counterparty_country": "IT", "channel": "SEPA", "aml_alert": false, "mcc": 6300},
	{"pay_id": 19, "cust_id": 5, "booked_at": "2023-08-24", "amount_eur": 89.0, "counterparty_iban": "FR7630006000011234567890189", "counterparty_country": "FR", "channel": "CARD", "aml_alert": false, "mcc": 5411},
	{"pay_id": 20, "cust_id": 8, "booked_at": "2024-02-06", "amount_eur": 720.0, "counterparty_iban": "US64SVBKUS6S3300958879", "counterparty_country": "US", "channel": "SWIFT", "aml_alert": false, "mcc": 4111},
	{"pay_id": 21, "cust_id": 1, "booked_at": "2024-07-18", "amount_eur": 1340.0, "counterparty_iban": "NL91ABNA0417164300", "counterparty_country": "NL", "channel": "SEPA", "aml_alert": false, "mcc": 5732},
	{"pay_id": 22, "cust_id": 4, "booked_at": "2025-01-27", "amount_eur": 60.0, "counterparty_iban": "SE4550000000058398257466", "counterparty_country": "SE", "channel": "IDEAL", "aml_alert": false, "mcc": 5812},
	{"pay_id": 23, "cust_id": 7, "booked_at": "2025-06-09", "amount_eur": 9800.0, "counterparty_iban": "PT50000201231234567890154", "counterparty_country": "PT", "channel": "SWIFT", "aml_alert": false, "mcc": 6012},
	{"pay_id": 24, "cust_id": 9, "booked_at": "2026-01-14", "amount_eur": 430.0, "counterparty_iban": "SG12DBSS1234567890", "counterparty_country": "SG", "channel": "CARD", "aml_alert": false, "mcc": 4722}
]`

const branchAccess = `[
	{"username": "alice", "branch": "AMS-01"},
	{"username": "alice", "branch": "PAR-03"},
	{"username": "alice", "branch": "BER-01"},
	{"username": "bob", "branch": "AMS-01"},
	{"username": "bob", "branch": "WAW-02"},
	{"username": "bob", "branch": "MIL-01"},
	{"username": "carol", "branch": "NYC-01"}
]`

const profiles = `[
	{"cust_id": 1, "contact": {"email": "sanne@example.com", "phone": "+31-20-555-0101", "address": {"city": "Amsterdam", "postcode": "1011AB", "country": "NL"}}, "tags": ["retail", "student"], "prefs": [{"key": "language", "value": "nl"}, {"key": "channel", "value": "app"}]},
	{"cust_id": 2, "contact": {"email": "marek@example.com", "phone": null, "address": {"city": "Warszawa", "postcode": "00-001", "country": "PL"}}, "tags": ["retail"], "prefs": [{"key": "language", "value": "pl"}]},
	{"cust_id": 3, "contact": {"email": "elena@example.com", "phone": "+39-02-555-0103", "address": {"city": "Milano", "postcode": "20121", "country": "IT"}}, "tags": [], "prefs": [{"key": "language", "value": "it"}, {"key": "paper", "value": "no"}]},
	{"cust_id": 4, "contact": {"email": "johan@example.com", "phone": "+46-8-555-0104", "address": {"city": "Stockholm", "postcode": "111 20", "country": "SE"}}, "tags": ["private"], "prefs": []},
	{"cust_id": 5, "contact": {"email": null, "phone": "+33-1-555-0105", "address": {"city": "Paris", "postcode": "75003", "country": "FR"}}, "tags": ["retail", null], "prefs": [{"key": "language", "value": null}]},
	{"cust_id": 6, "contact": null, "tags": null, "prefs": null}
]`
