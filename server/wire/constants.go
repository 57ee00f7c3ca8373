package wire

// Capability flags of the handshake.
const (
	ClientLongPassword     uint32 = 1 << 0
	ClientFoundRows        uint32 = 1 << 1
	ClientLongFlag         uint32 = 1 << 2
	ClientConnectWithDB    uint32 = 1 << 3
	ClientLocalFiles       uint32 = 1 << 7
	ClientProtocol41       uint32 = 1 << 9
	ClientSSL              uint32 = 1 << 11
	ClientTransactions     uint32 = 1 << 13
	ClientSecureConnection uint32 = 1 << 15
	ClientMultiStatements  uint32 = 1 << 16
	ClientMultiResults     uint32 = 1 << 17
	ClientPSMultiResults   uint32 = 1 << 18
	ClientPluginAuth       uint32 = 1 << 19
	ClientConnectAttrs     uint32 = 1 << 20
	ClientPluginAuthLenenc uint32 = 1 << 21
	ClientSessionTrack     uint32 = 1 << 23
	ClientDeprecateEOF     uint32 = 1 << 24
)

// Capabilities is what the server always offers; TLS and LOCAL INFILE are added by
// configuration. Compression is not offered on purpose: it makes the length of
// encrypted packets depend on their content.
const Capabilities = ClientLongPassword | ClientFoundRows | ClientLongFlag | ClientConnectWithDB |
	ClientProtocol41 | ClientTransactions | ClientSecureConnection | ClientMultiStatements |
	ClientMultiResults | ClientPSMultiResults | ClientPluginAuth | ClientConnectAttrs |
	ClientPluginAuthLenenc | ClientSessionTrack | ClientDeprecateEOF

// Status flags of OK and EOF packets.
const (
	StatusAutocommit   uint16 = 0x0002
	StatusMoreResults  uint16 = 0x0008
	StatusStateChanged uint16 = 0x4000
)

// Command is the first byte of a packet from the client.
type Command byte

// The commands that the server answers; every other one is refused.
const (
	ComQuit             Command = 0x01
	ComInitDB           Command = 0x02
	ComQuery            Command = 0x03
	ComFieldList        Command = 0x04
	ComStatistics       Command = 0x09
	ComProcessKill      Command = 0x0c
	ComPing             Command = 0x0e
	ComChangeUser       Command = 0x11
	ComStmtPrepare      Command = 0x16
	ComStmtExecute      Command = 0x17
	ComStmtSendLongData Command = 0x18
	ComStmtClose        Command = 0x19
	ComStmtReset        Command = 0x1a
	ComSetOption        Command = 0x1b
	ComStmtFetch        Command = 0x1c
	ComResetConnection  Command = 0x1f
)

// Type is a column or parameter type of the protocol.
type Type byte

// The types.
const (
	TypeDecimal    Type = 0x00
	TypeTiny       Type = 0x01
	TypeShort      Type = 0x02
	TypeLong       Type = 0x03
	TypeFloat      Type = 0x04
	TypeDouble     Type = 0x05
	TypeNull       Type = 0x06
	TypeTimestamp  Type = 0x07
	TypeLongLong   Type = 0x08
	TypeInt24      Type = 0x09
	TypeDate       Type = 0x0a
	TypeTime       Type = 0x0b
	TypeDatetime   Type = 0x0c
	TypeYear       Type = 0x0d
	TypeVarchar    Type = 0x0f
	TypeBit        Type = 0x10
	TypeBool       Type = 0xf4
	TypeJSON       Type = 0xf5
	TypeNewDecimal Type = 0xf6
	TypeEnum       Type = 0xf7
	TypeSet        Type = 0xf8
	TypeTinyBlob   Type = 0xf9
	TypeMediumBlob Type = 0xfa
	TypeLongBlob   Type = 0xfb
	TypeBlob       Type = 0xfc
	TypeVarString  Type = 0xfd
	TypeString     Type = 0xfe
	TypeGeometry   Type = 0xff
)

// Flags of column definitions.
const (
	flagNotNull  uint16 = 0x0001
	flagBlob     uint16 = 0x0010
	flagUnsigned uint16 = 0x0020
	flagBinary   uint16 = 0x0080
)

// Collations. Text is always UTF-8; 45 is utf8mb4_general_ci, which every client
// library knows (the collation that comparisons use is utf8mb4_0900_bin).
const (
	collationText   uint16 = 45
	collationBinary uint16 = 63
)

// Names of authentication methods.
const (
	MethodCachingSHA2 = "caching_sha2_password"
	MethodClear       = "mysql_clear_password"
	// MethodOpenID is that of MySQL 9.1 for tokens.
	MethodOpenID = "authentication_openid_connect_client"
)

const (
	maxPayload  = 1<<24 - 1 // a packet of this size continues in the next one
	nullMarker  = 0xfb
	localInfile = 0xfb
	decimalsAll = 31 // "not fixed", for float and double
)
