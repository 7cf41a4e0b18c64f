// Package config decodes YAML strictly into Go structs. An unknown key, a wrong type or a missing
// value is an error with file, line and column, and that for an unknown word suggests the nearest
// known one. The JSON Schema of a file is made from the same structs, so an editor completes
// exactly what the program accepts.
//
// Fields are described by tags:
//
//	Trials int `key:"trials" doc:"independent repetitions of every random draw" default:"1" min:"1"`
//
// key may be followed by ",required". default, min and max are optional, and so is enum, which
// lists the words that a string may be, as in enum:"sample|trial". A field with short:"true" is the
// short form of the struct: `images: photos` for `images: {folder: photos}`. A type whose YAML has
// several forms implements Decoder, and Schemer for its schema.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/noether-ml/noether/internal/filesys"
)

// A Kind is the type of a node.
type Kind int

const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
)

func (k Kind) String() string {
	return [...]string{"nothing", "true or false", "a whole number", "a number", "text", "a list", "a mapping"}[k]
}

// A Node is a YAML value and its position in the file.
type Node struct {
	Kind  Kind
	Bool  bool
	Int   int64
	Float float64 // also for Int
	Text  string  // of a scalar, as written but with ${NAME} replaced
	Items []*Node // of a list
	Pairs []Pair  // of a mapping, in the order of the file

	file      string // for messages
	line, col int    // from 1
	nodes     int    // result of size; 0: not yet computed
}

// A Pair is an entry of a mapping.
type Pair struct {
	Key   *Node
	Value *Node
}

// An Error is an error in a file, with its position.
type Error struct {
	File      string
	Line, Col int
	Msg       string

	cause error // the wrapped error; nil if there is none
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg) }
func (e *Error) Unwrap() error { return e.cause }

// Errorf returns an error with the position of the node. %w wraps its cause.
func (n *Node) Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	msg := err.Error()
	if strings.ContainsAny(msg, "\r\n") { // a name from the file may contain line breaks
		msg = oneLine(msg)
	}
	return &Error{File: n.file, Line: n.line, Col: n.col, Msg: msg, cause: errors.Unwrap(err)}
}

// Get returns the value of a key of a mapping, or nil.
func (n *Node) Get(key string) *Node {
	for _, p := range n.Pairs {
		if p.Key.Text == key {
			return p.Value
		}
	}
	return nil
}

// Find returns the node at a path of keys and of indices into lists, or the innermost node around
// it that exists.
func (n *Node) Find(path ...string) *Node {
	for _, step := range path {
		next := n.Get(step)
		if i, err := strconv.Atoi(step); err == nil && n.Kind == List && i >= 0 && i < len(n.Items) {
			next = n.Items[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	return n
}

// Limits on files, so that a hostile file, such as one of aliases of aliases, gives an error and
// does not exhaust the memory.
const (
	maxNodes = 1_000_000 // values, those of aliases counted each time
	maxDepth = 100       // of nested values
	maxBytes = 16 << 20
)

// ReadFile reads a file for Parse. Of a file that is too large for Parse it reads just enough that
// Parse says so.
func ReadFile(path string) ([]byte, error) {
	f, err := filesys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// Parse parses one YAML document; file is its name for messages. Strings may contain ${NAME} or
// ${NAME:-default}, which are replaced by the variable of that name in vars or, without one, in the
// environment. A variable that is unset or empty and has no default is an error.
func Parse(file string, data []byte, vars map[string]string) (*Node, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s: a settings file must not be larger than %d MiB", file, maxBytes>>20)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s: not a text file: settings are YAML in UTF-8", file)
	}
	tree, err := parse(data)
	if err != nil {
		return nil, parseError(file, string(data), err)
	}
	if tree == nil {
		return nil, &Error{File: file, Line: 1, Col: 1, Msg: "the file is empty"}
	}
	b := builder{file: file, vars: vars, built: map[*yaml.Node]*Node{}}
	return b.build(tree, 0)
}

// errSecond is the error of a second document.
type errSecond struct{ line int }

func (e errSecond) Error() string {
	return fmt.Sprintf("yaml: line %d: a second document: one file holds one", e.line)
}

// parse returns the only document, nil if there is none.
func parse(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil { // a fault of the YAML parser
			err = fmt.Errorf("invalid YAML: %v", r)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		switch err := d.Decode(&document); {
		case errors.Is(err, io.EOF):
			return root, nil
		case err != nil:
			return nil, err
		case len(document.Content) == 0 || isEmpty(document.Content[0]):
		case root != nil:
			return nil, errSecond{document.Content[0].Line}
		default:
			root = document.Content[0]
		}
	}
}

// isEmpty reports whether a node stands for a value that is left out.
func isEmpty(a *yaml.Node) bool { return a.Kind == yaml.ScalarNode && a.Value == "" && a.Style == 0 }

// syntaxError matches the text of an error of the YAML parser.
var syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// parseError returns an error of the YAML parser with its position.
func parseError(file, text string, err error) error {
	out := &Error{File: file, Line: 1, Col: 1, Msg: oneLine(err.Error())}
	if m := syntaxError.FindStringSubmatch(out.Msg); m != nil {
		out.Line, out.Msg = 1, m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			out.Line = n
		}
	}
	lines := strings.Split(text, "\n")
	switch {
	case strings.Contains(out.Msg, "max depth"):
		out.Msg = fmt.Sprintf("more than %d levels of nesting", maxDepth)
	case strings.HasPrefix(out.Msg, "unknown anchor '"): // the parser does not tell the line
		name, _, _ := strings.Cut(strings.TrimPrefix(out.Msg, "unknown anchor '"), "'")
		before, _, _ := strings.Cut(text, "*"+name)
		out.Line, out.Msg = 1+strings.Count(before, "\n"), fmt.Sprintf("the alias *%s has no anchor before it", name)
	case strings.HasPrefix(strings.TrimLeft(lines[min(out.Line, len(lines))-1], " "), "\t"):
		out.Msg = "the line is indented by a tab, and YAML is indented by spaces"
	}
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// A builder converts the tree of the YAML parser to Nodes.
type builder struct {
	file  string
	vars  map[string]string
	built map[*yaml.Node]*Node // of anchors
	count int                  // number of nodes, including those of aliases
}

func (b *builder) build(a *yaml.Node, depth int) (*Node, error) {
	n := &Node{file: b.file, line: max(a.Line, 1), col: max(a.Column, 1)}
	b.count++
	if b.count > maxNodes || depth > maxDepth {
		return nil, n.Errorf("the file has more than %d values or %d levels of nesting", maxNodes, maxDepth)
	}
	var err error
	switch a.Kind {
	case yaml.SequenceNode:
		n, err = b.sequence(n, a.Content, depth)
	case yaml.MappingNode:
		n, err = b.mapping(n, a.Content, depth)
	case yaml.AliasNode:
		v, ok := b.built[a.Alias]
		if !ok {
			return nil, n.Errorf("the alias *%s has no anchor before it", a.Value)
		}
		if b.count += v.size(); b.count > maxNodes {
			return nil, n.Errorf("the file is too large: aliases of aliases")
		}
		return v, nil
	default:
		n, err = b.scalar(n, a)
	}
	if a.Anchor != "" && err == nil {
		b.built[a] = n
	}
	return n, err
}

func (b *builder) scalar(n *Node, a *yaml.Node) (*Node, error) {
	n.Text = a.Value
	switch a.ShortTag() {
	case "!!null":
		n.Text = ""
		return n, nil
	case "!!bool":
		n.Kind = Bool
		return n, a.Decode(&n.Bool)
	case "!!int":
		n.Kind = Int
		if err := a.Decode(&n.Int); err != nil {
			return nil, n.Errorf("the number %s is too large", n.Text)
		}
		n.Float = float64(n.Int)
		return n, nil
	case "!!float":
		n.Kind = Float
		if err := a.Decode(&n.Float); err != nil {
			return nil, n.Errorf("%s is not a number", n.Text)
		}
		return n, nil
	}
	if a.Style == 0 && oneVariablePattern.MatchString(a.Value) {
		return b.variable(n, a.Value)
	}
	return b.text(n, a.Value)
}

func (b *builder) sequence(n *Node, values []*yaml.Node, depth int) (*Node, error) {
	n.Kind = List
	for _, v := range values {
		item, err := b.build(v, depth+1)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, item)
	}
	return n, nil
}

// oneVariablePattern matches a text that consists of one variable.
var oneVariablePattern = regexp.MustCompile(`^\$\{[^}]*\}$`)

// variable returns the node of an unquoted variable: a number or boolean if the variable's value
// reads as one, so that `limit: ${LIMIT:-2000}` is a number.
func (b *builder) variable(n *Node, s string) (*Node, error) {
	n, err := b.text(n, s)
	if err != nil {
		return nil, err
	}
	if v, err := strconv.ParseInt(n.Text, 10, 64); err == nil {
		n.Kind, n.Int, n.Float = Int, v, float64(v)
	} else if v, err := strconv.ParseFloat(n.Text, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		n.Kind, n.Float = Float, v
	} else if n.Text == "true" || n.Text == "false" {
		n.Kind, n.Bool = Bool, n.Text == "true"
	}
	return n, nil
}

// size returns the number of nodes of the tree from n on. A node that aliases repeat is counted
// each time.
func (n *Node) size() int {
	if n.nodes == 0 {
		n.nodes = 1
		for _, item := range n.Items {
			n.nodes += item.size()
		}
		for _, p := range n.Pairs {
			n.nodes += 1 + p.Value.size()
		}
	}
	return n.nodes
}

// variablePattern matches ${NAME} or ${NAME:-default}.
var variablePattern = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// text returns the node for a text, with variables replaced. See Parse for the errors.
func (b *builder) text(n *Node, s string) (*Node, error) {
	n.Kind = String
	var missing string
	n.Text = variablePattern.ReplaceAllStringFunc(s, func(m string) string {
		g := variablePattern.FindStringSubmatch(m)
		v, given := b.vars[g[1]]
		if !given {
			v = os.Getenv(g[1])
		}
		if v != "" {
			return v
		}
		if g[2] == "" {
			missing = g[1]
		}
		return g[3]
	})
	if missing != "" {
		return nil, n.Errorf("the variable %s is not set: use --var %s=VALUE or set it in the environment", missing, missing)
	}
	return n, nil
}

// mapping takes keys and values in turn.
func (b *builder) mapping(n *Node, content []*yaml.Node, depth int) (*Node, error) {
	n.Kind = Map
	if len(content) > 0 { // the position of the first key
		n.line, n.col = content[0].Line, content[0].Column
	}
	seen := map[string]bool{}
	var merged []Pair
	for i := 0; i+1 < len(content); i += 2 {
		k := content[i]
		key := &Node{Kind: String, Text: k.Value, file: b.file, line: k.Line, col: k.Column}
		value, err := b.build(content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if k.ShortTag() == "!!merge" {
			pairs, err := mergedPairs(key, value)
			if err != nil {
				return nil, err
			}
			merged = append(merged, pairs...)
			continue
		}
		if seen[key.Text] {
			return nil, key.Errorf("the key %q occurs twice", key.Text)
		}
		seen[key.Text] = true
		if isEmpty(content[i+1]) { // a value that is left out
			value.line, value.col = key.line, key.col
		}
		n.Pairs = append(n.Pairs, Pair{Key: key, Value: value})
	}
	// Explicit keys override merged ones, and the first of several merged keys overrides the others.
	for _, p := range merged {
		if !seen[p.Key.Text] {
			seen[p.Key.Text] = true
			n.Pairs = append(n.Pairs, p)
		}
	}
	return n, nil
}

// mergedPairs returns the entries that the merge key << adds. Its value is a mapping or a list of
// mappings.
func mergedPairs(key, value *Node) ([]Pair, error) {
	switch value.Kind {
	case Map:
		return value.Pairs, nil
	case List:
		var out []Pair
		for _, item := range value.Items {
			if item.Kind != Map {
				return nil, key.Errorf("<< needs a mapping or a list of mappings")
			}
			out = append(out, item.Pairs...)
		}
		return out, nil
	}
	return nil, key.Errorf("<< needs a mapping or a list of mappings")
}
