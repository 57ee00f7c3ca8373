package masks

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// Rendering is whose characters Ranger's text masks write, so that one policy
// looks alike in SQE and in a peer that enforces it too. It never changes what a
// mask keeps or what type it gives. The zero value is SQE's own.
type Rendering string

// The renderings.
const (
	// RenderSQE counts letters and digits of every script.
	RenderSQE Rendering = "sqe"
	// RenderTrino follows the transformers of Ranger's service definition "trino".
	// MASK knows letters and digits of ASCII only and shows all other characters.
	RenderTrino Rendering = "trino"
	// RenderSpark follows Kyuubi's Spark AuthZ plugin 1.12: letters and digits of
	// ASCII, and U for every other character.
	RenderSpark Rendering = "spark"
)

// rangerText is what Ranger's text masks do. In SQE's rendering MASK keeps the
// shape of the text and the show-4 masks tell neither case nor which characters
// are digits.
var rangerText = map[Rendering]map[string]ClassMask{
	RenderSQE: {
		Redact:     {Upper: "X", Lower: "x", Digit: "n"},
		ShowFirst4: {Upper: "x", Lower: "x", Digit: "x", KeepFirst: 4},
		ShowLast4:  {Upper: "x", Lower: "x", Digit: "x", KeepLast: 4},
	},
	RenderTrino: {
		Redact:     {Upper: "X", Lower: "x", Digit: "0", ASCII: true},
		ShowFirst4: {Upper: "X", Lower: "X", Digit: "X", Other: "X", KeepFirst: 4},
		ShowLast4:  {Upper: "X", Lower: "X", Digit: "X", Other: "X", KeepLast: 4},
	},
	RenderSpark: {
		Redact:     {Upper: "X", Lower: "x", Digit: "n", Other: "U", ASCII: true},
		ShowFirst4: {Upper: "X", Lower: "x", Digit: "n", Other: "U", ASCII: true, KeepFirst: 4},
		ShowLast4:  {Upper: "X", Lower: "x", Digit: "n", Other: "U", ASCII: true, KeepLast: 4},
	},
}

func (o Options) rendering() Rendering {
	if o.Rendering == "" {
		return RenderSQE
	}
	return o.Rendering
}

// classes is the class mask of a text action under these options.
func (o Options) classes(action string) (ClassMask, error) {
	c, ok := rangerText[o.rendering()][action]
	if !ok {
		return ClassMask{}, fmt.Errorf("the rendering %q of masks is not known", o.Rendering)
	}
	c.WholeWhenShort = !o.KeepShort
	return c, nil
}

// peerDigest is an unkeyed digest of a text as a text.
type peerDigest struct {
	mask  func(t arrow.DataType) Mask
	apply func(string) string
}

var (
	fnMD5   = function("md5")
	fnUpper = function("upper")

	peerDigests = map[Rendering]peerDigest{
		RenderTrino: {
			mask: func(t arrow.DataType) Mask {
				return func(raw plan.Expr) plan.Expr {
					return call(fnUpper, t, call(fnHex, t, plainSHA(call(fnUTF8, plan.Binary, raw))))
				}
			},
			apply: func(s string) string {
				sum := sha256.Sum256([]byte(s))
				return strings.ToUpper(hex.EncodeToString(sum[:]))
			},
		},
		RenderSpark: {
			mask: func(t arrow.DataType) Mask {
				return func(raw plan.Expr) plan.Expr { return call(fnMD5, t, raw) }
			},
			apply: func(s string) string {
				sum := md5.Sum([]byte(s))
				return hex.EncodeToString(sum[:])
			},
		},
	}

	errUnkeyed = errors.New("a hash without a key belongs to the rendering of a peer, and none is chosen")
)

func (o Options) unkeyed() (peerDigest, error) {
	d, ok := peerDigests[o.rendering()]
	if !ok {
		return peerDigest{}, errUnkeyed
	}
	return d, nil
}
