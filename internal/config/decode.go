package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/spelling"
)

// A Decoder is a type that decodes itself from a Node because its YAML has several forms.
type Decoder interface {
	DecodeNode(n *Node) error
}

// Decode sets v, a pointer, from a node. Fields that are missing from the file get their defaults.
// An error has the position in the file.
func Decode(n *Node, v any) error {
	return decode(n, reflect.ValueOf(v).Elem())
}

func decode(n *Node, v reflect.Value) error {
	if d, ok := v.Addr().Interface().(Decoder); ok {
		return d.DecodeNode(n)
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decode(n, v.Elem())
	case reflect.Bool:
		if n.Kind != Bool {
			return n.expected("true or false")
		}
		v.SetBool(n.Bool)
	case reflect.Int, reflect.Int64:
		if n.Kind != Int {
			return n.expected("a whole number")
		}
		v.SetInt(n.Int)
	case reflect.Uint64:
		if n.Kind != Int || n.Int < 0 {
			return n.expected("a whole number from 0")
		}
		v.SetUint(uint64(n.Int))
	case reflect.Float64, reflect.Float32:
		f, err := n.Number()
		if err != nil {
			return err
		}
		v.SetFloat(f)
	case reflect.String:
		s, err := n.Scalar()
		if err != nil {
			return err
		}
		v.SetString(s)
	case reflect.Slice:
		return decodeList(n, v)
	case reflect.Map:
		return decodeMap(n, v)
	case reflect.Struct:
		return decodeStruct(n, v)
	default:
		panic(fmt.Sprintf("config: a field of type %s cannot be read from YAML", v.Type()))
	}
	return nil
}

// Number returns the node's value as a finite number.
func (n *Node) Number() (float64, error) {
	if n.Kind != Int && n.Kind != Float {
		return 0, n.expected("a number")
	}
	if math.IsNaN(n.Float) || math.IsInf(n.Float, 0) {
		return 0, n.Errorf("%s is not a finite number", n.Text)
	}
	return n.Float, nil
}

// Scalar returns the node's value as text. Numbers and booleans keep the form in which they are
// written.
func (n *Node) Scalar() (string, error) {
	if n.Kind == Null || n.Kind == List || n.Kind == Map {
		return "", n.expected("text")
	}
	return n.Text, nil
}

func (n *Node) expected(what string) error {
	found := n.Kind.String()
	if n.Kind == String {
		found = strconv.Quote(n.Text)
	} else if n.Text != "" {
		found = n.Text
	}
	return n.Errorf("expected %s, not %s", what, found)
}

func decodeList(n *Node, v reflect.Value) error {
	if n.Kind != List {
		// A single value is read as a list of one if it has no other meaning.
		if n.Kind == Null || n.Kind == Map && v.Type().Elem().Kind() != reflect.Struct {
			return n.expected("a list")
		}
		n = &Node{Kind: List, Items: []*Node{n}, file: n.file, line: n.line, col: n.col}
	}
	out := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		if err := decode(item, out.Index(i)); err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

func decodeMap(n *Node, v reflect.Value) error {
	if n.Kind != Map {
		return n.expected("a mapping")
	}
	out := reflect.MakeMap(v.Type())
	for _, p := range n.Pairs {
		item := reflect.New(v.Type().Elem()).Elem()
		if err := decode(p.Value, item); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(p.Key.Text).Convert(v.Type().Key()), item)
	}
	v.Set(out)
	return nil
}

type field struct {
	// key names the field in YAML, doc describes it, and min and max bound it. required makes the key
	// obligatory. If short is set, the value of this field may stand for the whole struct.
	key, doc, def, min, max string   // def is the tag default
	enum                    []string // the words to choose from; nil: any
	required, short         bool
	index                   []int // of reflect.Value.FieldByIndex
	typ                     reflect.Type
}

// fieldsOf returns the fields of a struct that have a tag key, including those of embedded structs.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		key, ok := f.Tag.Lookup("key")
		if !ok {
			continue
		}
		name, option, _ := strings.Cut(key, ",")
		d := field{key: name, doc: f.Tag.Get("doc"), def: f.Tag.Get("default"), min: f.Tag.Get("min"), max: f.Tag.Get("max"),
			required: option == "required", short: f.Tag.Get("short") == "true", index: f.Index, typ: f.Type}
		if e := f.Tag.Get("enum"); e != "" {
			d.enum = strings.Split(e, "|")
		}
		out = append(out, d)
	}
	return out
}

// Keys returns the keys of a struct, in the order of its fields.
func Keys(t reflect.Type) []string {
	var out []string
	for _, f := range fieldsOf(t) {
		out = append(out, f.key)
	}
	return out
}

func decodeStruct(n *Node, v reflect.Value) error {
	if n.Kind == Null { // `grayscale:` without a value means all defaults
		n = &Node{Kind: Map, file: n.file, line: n.line, col: n.col}
	}
	fields := fieldsOf(v.Type())
	if i := slices.IndexFunc(fields, func(f field) bool { return f.short }); i >= 0 && n.Kind != Map {
		n = n.under(fields[i].key)
	}
	if n.Kind != Map {
		return n.expected("a mapping")
	}
	keys := Keys(v.Type())
	for _, p := range n.Pairs {
		if !slices.Contains(keys, p.Key.Text) {
			return p.Key.Unknown("key", keys)
		}
	}
	for _, f := range fields {
		target := v.FieldByIndex(f.index)
		value := n.Get(f.key)
		switch {
		case value != nil:
			if err := decode(value, target); err != nil {
				return err
			}
			if err := f.check(value, target); err != nil {
				return err
			}
		case f.required:
			return n.Errorf("the key %q is missing", f.key)
		case f.def != "":
			f.setDefault(target)
		}
	}
	return nil
}

// under returns the mapping for a short form: `images: {folder: photos}` for `images: photos`.
func (n *Node) under(key string) *Node {
	position := Node{file: n.file, line: n.line, col: n.col}
	name, whole := position, position
	name.Kind, name.Text = String, key
	whole.Kind, whole.Pairs = Map, []Pair{{Key: &name, Value: n}}
	return &whole
}

func (f field) setDefault(v reflect.Value) {
	n, err := Parse("default of "+f.key, []byte(f.def), nil)
	if err == nil {
		err = decode(n, v)
	}
	if err != nil {
		panic(err)
	}
}

func (f field) check(n *Node, v reflect.Value) error {
	if f.enum != nil && v.Kind() == reflect.String && !slices.Contains(f.enum, v.String()) {
		return n.Unknown(f.key, f.enum)
	}
	var x float64
	switch {
	case v.CanInt():
		x = float64(v.Int())
	case v.CanFloat():
		x = v.Float()
	default:
		return nil
	}
	if lo, err := strconv.ParseFloat(f.min, 64); err == nil && x < lo {
		return n.Errorf("%s is %s; it must be at least %s", f.key, n.Text, f.min)
	}
	if hi, err := strconv.ParseFloat(f.max, 64); err == nil && x > hi {
		return n.Errorf("%s is %s; it must be at most %s", f.key, n.Text, f.max)
	}
	return nil
}

// Unknown returns the error for an unknown word, with the nearest known word.
func (n *Node) Unknown(what string, known []string) error {
	return n.Errorf("unknown %s %q; %s", what, n.Text, Suggest(n.Text, known))
}

// Suggest returns a hint on the known words: the nearest one, or a list.
func Suggest(word string, known []string) string {
	if best := Nearest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) > 24 {
		return fmt.Sprintf("there are %d, %s and %s among them", len(known), known[0], known[len(known)-1])
	}
	return "known are " + strings.Join(known, ", ")
}

// Nearest returns the known word that is probably meant by a word, or "" if none is near. A word of
// three letters or more means the first known word that starts with it.
func Nearest(word string, known []string) string {
	best, distance := "", math.MaxInt
	for _, k := range known {
		if len(word) >= 3 && strings.HasPrefix(k, strings.ToLower(word)) {
			return k
		}
		if d := spelling.Distance(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if distance < len(word) && distance <= max(2, len(best)/3) { // with len(word) all letters would differ
		return best
	}
	return ""
}
