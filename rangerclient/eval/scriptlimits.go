package eval

import (
	"errors"
	"math"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
)

// goja looks at its interrupt between instructions only, and one instruction may be
// a built-in that works or allocates without end. So the source is changed before
// it runs, and the built-ins are replaced:
//
//   - texts and lists have at most maxLength parts: the result of every + and
//     template is measured, and built-ins are asked before they make more;
//   - all built-ins together do at most maxWork;
//   - regular expressions have a weight, which times maxLength bounds the time of
//     those that Go's library runs; the others (regexp2) have a deadline;
//   - nothing compiles source at run time, and what policies have no use for and
//     allocates by number (buffers, big integers, proxies) is not there;
//   - the heap must not grow by more than maxHeap while a script runs that is no
//     longer young.
//
// A script that meets a limit is undecided, whatever it answers.
const (
	maxLength   = 64 << 10
	maxWork     = 16 << 20
	maxWeight   = 400
	maxDepth    = 50 // of lists in lists, where they become text
	maxHeap     = 48 << 20
	young       = 20 * time.Millisecond
	heapEvery   = 4 * time.Millisecond
	regexpTime  = scriptTime + 400*time.Millisecond
	regexpClock = 50 * time.Millisecond
	// methodsKey is where a constructor keeps the methods of what it makes.
	methodsKey = "proto" + "type"
	// The name cannot be written in source.
	measureName = "\x00measure"
)

var errLimit = errors.New("its script needs too much time or memory")

func init() {
	// goja takes an elapsed deadline for no match. It is past scriptTime, so that a
	// script that met it is undecided; the distance makes up for regexp2's clock,
	// which a busy machine turns late.
	regexp2.SetTimeoutCheckPeriod(regexpClock)
	regexp2.DefaultMatchTimeout = regexpTime
}

// limiter counts what one run of a script does.
type limiter struct {
	rt      *goja.Runtime
	work    int
	depth   int
	expired atomic.Bool
	over    atomic.Bool
	done    chan struct{}
}

// stop ends the script, which cannot catch that.
func (l *limiter) stop() {
	l.over.Store(true)
	l.rt.Interrupt(errLimit)
	panic(l.rt.NewTypeError("limit"))
}

// charge counts n parts that a built-in reads or makes.
func (l *limiter) charge(n int64) {
	if n > maxLength || n < 0 || l.expired.Load() {
		l.stop()
	}
	if l.work += int(n) + 1; l.work > maxWork {
		l.stop()
	}
}

// watch ends the script after scriptTime, and when the heap grows too much. stop it
// when the script is at its end.
func (l *limiter) watch() (stop func()) {
	l.done = make(chan struct{})
	timer := time.AfterFunc(young, func() {
		deadline := time.NewTimer(scriptTime - young)
		defer deadline.Stop()
		tick := time.NewTicker(heapEvery)
		defer tick.Stop()
		base := heap()
		for {
			select {
			case <-l.done:
				return
			case <-deadline.C:
			case <-tick.C:
				if heap() < base+maxHeap {
					continue
				}
			}
			l.over.Store(true)
			l.expired.Store(true)
			l.rt.Interrupt(errLimit)
			return
		}
	})
	return func() {
		timer.Stop()
		close(l.done)
	}
}

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// length is how long a value is as a text or as a list.
func length(v goja.Value) int64 {
	switch x := v.(type) {
	case nil:
		return 0
	case goja.String:
		return int64(x.Length())
	case *goja.Object:
		n := x.Get("length")
		if n == nil {
			return 0
		}
		if _, ok := n.(*goja.Object); ok { // another number at each look
			return math.MaxInt32
		}
		if f := n.ToFloat(); f < math.MaxInt32 {
			return int64(f)
		}
		return math.MaxInt32
	}
	return 0
}

// measure is what every + and template goes through.
func (l *limiter) measure(call goja.FunctionCall) goja.Value {
	v := call.Argument(0)
	if s, ok := v.(goja.String); ok {
		l.charge(int64(s.Length()))
	}
	return v
}

// without are the globals that scripts do not have: they compile source, or allocate
// by number, or hide what an object is.
var without = []string{
	"eval", "Function", "Proxy", "Reflect", "BigInt", "ArrayBuffer", "SharedArrayBuffer", "DataView", "Promise", "Int8Array", "Uint8Array", "Uint8ClampedArray",
	"Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array",
}

// guard replaces the built-ins.
func (l *limiter) guard() {
	rt := l.rt
	global := rt.GlobalObject()
	for _, name := range without {
		_ = global.Delete(name)
	}
	refused := rt.ToValue(func(goja.FunctionCall) goja.Value { l.stop(); return nil })
	fixed := func(o *goja.Object, constructor goja.Value) {
		_ = o.DefineDataProperty("constructor", constructor, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	}
	// The constructors of functions of each kind compile source.
	v, err := rt.RunString(`[function () {}, function* () {}, async function () {}].map(Object.getPrototypeOf)`)
	if err != nil {
		l.stop()
	}
	for _, key := range []string{"0", "1", "2"} {
		fixed(v.ToObject(rt).Get(key).ToObject(rt), refused)
	}
	functions := rt.ToValue(func() {}).ToObject(rt).Get("__proto__").ToObject(rt)
	l.wrap(functions, "apply", func(_ goja.Value, args []goja.Value) ([]goja.Value, int64) {
		if len(args) > 1 {
			return args, length(args[1])
		}
		return args, 0
	})
	l.wrap(functions, "bind", func(_ goja.Value, args []goja.Value) ([]goja.Value, int64) { return args, 4096 })

	texts, lists := global.Get("String").ToObject(rt), global.Get("Array").ToObject(rt)
	for name := range textMethods {
		l.replaceBy(texts.Get(methodsKey).ToObject(rt), name, l.textCost(name), true)
	}
	listed := lists.Get(methodsKey).ToObject(rt)
	for name := range listMethods {
		l.wrap(listed, name, l.listCost(name))
	}
	_ = listed.DefineDataProperty("join", rt.ToValue(l.join), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = listed.SetSymbol(goja.SymIterator, listed.Get("values"))
	_ = texts.Delete("raw") // reads lengths in its arguments
	sum := func(_ goja.Value, args []goja.Value) ([]goja.Value, int64) { return args, total(args) }
	for object, methods := range map[*goja.Object]string{
		texts: "fromCharCode fromCodePoint", lists: "from of", global.Get("JSON").ToObject(rt): "parse",
		global.Get("Object").ToObject(rt): "assign entries fromEntries keys values getOwnPropertyNames getOwnPropertyDescriptors groupBy",
		global:                            "escape unescape encodeURI encodeURIComponent decodeURI decodeURIComponent",
	} {
		for _, name := range strings.Fields(methods) {
			l.wrap(object, name, sum)
		}
	}
	l.wrap(global.Get("JSON").ToObject(rt), "stringify", l.stringify)
	l.construct("Array", func(args []goja.Value) {
		if len(args) == 1 && goja.IsNumber(args[0]) {
			l.charge(args[0].ToInteger())
		}
	})
	l.construct("RegExp", func(args []goja.Value) {
		for i, a := range args {
			o, ok := a.(*goja.Object)
			switch {
			case i == 0 && !ok:
				l.pattern(a)
			case ok && (i > 0 || o.ClassName() != "RegExp"):
				l.stop()
			}
		}
	})
	_ = global.Get("RegExp").ToObject(rt).Get(methodsKey).ToObject(rt).Delete("compile")
}

// seal takes away what makes properties that are another one at each look. Nothing of
// ours may need them afterwards.
func (l *limiter) seal() {
	object := l.rt.GlobalObject().Get("Object").ToObject(l.rt)
	for _, name := range []string{"defineProperty", "defineProperties", "setPrototypeOf"} {
		_ = object.Delete(name)
	}
	l.wrap(object, "create", func(_ goja.Value, args []goja.Value) ([]goja.Value, int64) { return args[:min(len(args), 1)], 0 })
	methods := object.Get(methodsKey).ToObject(l.rt)
	for _, name := range []string{"__defineGetter__", "__defineSetter__"} {
		_ = methods.Delete(name)
	}
}

func total(args []goja.Value) (n int64) {
	for _, a := range args {
		n += length(a)
	}
	return n
}

// pattern refuses a regular expression that would take long.
func (l *limiter) pattern(v goja.Value) {
	s := v.String()
	l.charge(int64(len(s)))
	if weight(s) > maxWeight {
		l.stop()
	}
}

// cost is what a call may make or read, at most; and the arguments to call with.
type cost func(this goja.Value, args []goja.Value) ([]goja.Value, int64)

// wrap replaces a method by one that charges first, and measures what comes out.
func (l *limiter) wrap(object *goja.Object, name string, cost cost) {
	l.replaceBy(object, name, cost, false)
}

// replaceBy is wrap. What is called on an object as a text becomes one first: it must
// not be another one when it is read again.
func (l *limiter) replaceBy(object *goja.Object, name string, cost cost, text bool) {
	original, ok := goja.AssertFunction(object.Get(name))
	if !ok {
		return
	}
	_ = object.DefineDataProperty(name, l.rt.ToValue(func(call goja.FunctionCall) goja.Value {
		if l.depth++; l.depth > maxDepth {
			l.stop()
		}
		defer func() { l.depth-- }()
		this := call.This
		if _, ok := this.(*goja.Object); ok && text {
			this = this.ToString()
		}
		args, n := cost(this, call.Arguments)
		l.charge(n)
		v, err := original(this, args...)
		if err != nil {
			panic(err)
		}
		if s, ok := v.(goja.String); ok {
			l.charge(int64(s.Length()))
		}
		return v
	}), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// construct replaces a constructor, also where values lead to it.
func (l *limiter) construct(name string, check func(args []goja.Value)) {
	global := l.rt.GlobalObject()
	original := global.Get(name).ToObject(l.rt)
	replaced := l.rt.ToValue(func(call goja.ConstructorCall) *goja.Object {
		check(call.Arguments)
		o, err := l.rt.New(original, call.Arguments...)
		if err != nil {
			panic(err)
		}
		return o
	}).ToObject(l.rt)
	for _, key := range original.GetOwnPropertyNames() {
		if key != "length" && key != "name" && key != methodsKey {
			_ = replaced.Set(key, original.Get(key))
		}
	}
	proto := original.Get(methodsKey).ToObject(l.rt)
	_ = replaced.DefineDataProperty(methodsKey, proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	_ = proto.DefineDataProperty("constructor", replaced, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	_ = global.Set(name, replaced)
}

func (l *limiter) textCost(name string) cost {
	switch name {
	case "repeat":
		return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
			args = l.fixed(args)
			return args, int64(min(math.MaxInt32, math.Abs(numeric(args, 0))*float64(length(this))))
		}
	case "padStart", "padEnd":
		return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
			args = l.fixed(args)
			return args, int64(min(math.MaxInt32, math.Abs(numeric(args, 0))))
		}
	case "match", "matchAll", "search":
		return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
			if len(args) > 0 {
				if o, ok := args[0].(*goja.Object); !ok || o.ClassName() != "RegExp" {
					args = l.fixed(args)
					l.pattern(args[0])
				}
			}
			return args, length(this)
		}
	case "replace", "replaceAll":
		return l.replace(name)
	case "concat":
		return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
			args = l.fixed(args)
			return args, length(this) + total(args)
		}
	}
	return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
		return args, length(this) + total(args)
	}
}

// replace charges what a replacement may make of a text: each match may become the
// whole replacement, and each $ in it the whole text.
func (l *limiter) replace(name string) cost {
	return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
		n := length(this)
		if len(args) < 2 {
			return args, n
		}
		matches := int64(1)
		if _, ok := args[0].(*goja.Object); ok || name == "replaceAll" {
			matches = n + 1
		}
		if f, ok := goja.AssertFunction(args[1]); ok {
			made := n
			return []goja.Value{args[0], l.rt.ToValue(func(call goja.FunctionCall) goja.Value {
				v, err := f(call.This, call.Arguments...)
				if err != nil {
					panic(err)
				}
				s := v.ToString()
				made += length(s)
				l.charge(made)
				return s
			})}, n
		}
		with := args[1].ToString()
		each := length(with)
		if dollars := int64(strings.Count(with.String(), "$")); dollars > 0 {
			each += dollars * n
		}
		return append([]goja.Value{args[0], with}, args[2:]...), n + matches*each
	}
}

// fixed are arguments without objects, which may be another text at each look.
func (l *limiter) fixed(args []goja.Value) []goja.Value {
	out := slices.Clone(args)
	for i, a := range out {
		if _, ok := a.(*goja.Object); ok {
			out[i] = a.ToString()
			l.charge(length(out[i]))
		}
	}
	return out
}

func numeric(args []goja.Value, i int) float64 {
	if i >= len(args) {
		return 0
	}
	return args[i].ToFloat()
}

func (l *limiter) listCost(name string) cost {
	switch name {
	case "toLocaleString":
		return func(_ goja.Value, args []goja.Value) ([]goja.Value, int64) { return args, maxLength + 1 }
	case "flat":
		return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
			if len(args) > 0 && numeric(args, 0) > maxDepth {
				args = []goja.Value{l.rt.ToValue(maxDepth)}
			}
			return args, l.parts(this, 0)
		}
	case "flatMap":
		return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) { return args, maxLength + 1 }
	case "concat":
		return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
			return args, length(this) + total(args)
		}
	case "push": // reads nothing
		return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
			if length(this) > maxLength {
				l.stop()
			}
			return args, int64(len(args))
		}
	case "unshift", "splice", "toSpliced":
		return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) {
			return args, length(this) + int64(len(args))
		}
	}
	return func(this goja.Value, args []goja.Value) ([]goja.Value, int64) { return args, length(this) }
}

// join is Array's, in the order of ECMA-262 23.1.3.18, which measures as it goes. A
// list in itself has no end.
func (l *limiter) join(call goja.FunctionCall) goja.Value {
	if l.depth++; l.depth > maxDepth {
		l.stop()
	}
	defer func() { l.depth-- }()
	o := call.This.ToObject(l.rt)
	n := length(o)
	l.charge(n)
	separator := ","
	if s := call.Argument(0); !goja.IsUndefined(s) {
		separator = s.String()
	}
	var out strings.Builder
	for i := range n {
		if i > 0 {
			out.WriteString(separator)
		}
		if v := o.Get(strconv.FormatInt(i, 10)); v != nil && !goja.IsUndefined(v) && !goja.IsNull(v) {
			out.WriteString(v.String())
		}
		if out.Len() > 4*maxLength || l.expired.Load() {
			l.stop()
		}
	}
	v := l.rt.ToValue(out.String())
	l.charge(length(v))
	return v
}

// parts counts the members of lists in lists, as a tree.
func (l *limiter) parts(v goja.Value, depth int) int64 {
	o, ok := v.(*goja.Object)
	if !ok || o.ClassName() != "Array" {
		return 1
	}
	n := length(v)
	l.charge(n)
	if depth > maxDepth {
		return n
	}
	sum := int64(0)
	for i := range n {
		if sum += l.parts(o.Get(strconv.FormatInt(i, 10)), depth+1); sum > maxLength {
			break
		}
	}
	return sum
}

// stringify counts what JSON.stringify meets, as a tree, in its replacer.
func (l *limiter) stringify(_ goja.Value, args []goja.Value) ([]goja.Value, int64) {
	args = slices.Clone(args)
	for len(args) < 2 {
		args = append(args, goja.Undefined())
	}
	theirs, ok := goja.AssertFunction(args[1])
	if _, object := args[1].(*goja.Object); object && !ok {
		l.stop() // a list of names
	}
	made := int64(0)
	args[1] = l.rt.ToValue(func(call goja.FunctionCall) goja.Value {
		v := call.Argument(1)
		if theirs != nil {
			var err error
			if v, err = theirs(call.This, call.Arguments...); err != nil {
				panic(err)
			}
		}
		made += 8 + length(call.Argument(0))
		if s, ok := v.(goja.String); ok {
			made += length(s)
		}
		l.charge(0)
		if made > maxLength {
			l.stop()
		}
		return v
	})
	return args, 0
}
