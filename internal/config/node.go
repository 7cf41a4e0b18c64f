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
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

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
	maxDepth = 100       // of nested values; beyond maxNesting (500) a text is not even parsed
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
	// deepLine and wideLine return the first line at which a bound of nesting or keys is exceeded.
	if line := deepLine(data); line > 0 {
		return nil, &Error{File: file, Line: line, Col: 1, Msg: fmt.Sprintf("more than %d levels of nesting", maxNesting)}
	}
	if line := wideLine(data); line > 0 {
		return nil, &Error{File: file, Line: line, Col: 1, Msg: fmt.Sprintf("a mapping of more than %d keys", maxKeys)}
	}
	tree, err := parse(data)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) && y.GetToken() != nil {
			p := y.GetToken().Position
			message := oneLine(y.GetMessage())
			if lines := strings.Split(string(data), "\n"); p.Line <= len(lines) && strings.HasPrefix(strings.TrimLeft(lines[p.Line-1], " "), "\t") {
				message = "the line is indented by a tab, and YAML is indented by spaces"
			}
			return nil, &Error{File: file, Line: p.Line, Col: p.Column, Msg: message}
		}
		return nil, fmt.Errorf("%s: %s", file, oneLine(err.Error()))
	}
	b := builder{file: file, vars: vars, anchors: map[string]*Node{}}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return nil, &Error{File: file, Line: 1, Col: 1, Msg: "the file is empty"}
	}
	for _, more := range tree.Docs[1:] {
		if more.Body != nil {
			return nil, &Error{File: file, Line: more.Body.GetToken().Position.Line, Col: 1, Msg: "a second document: one file holds one"}
		}
	}
	return b.build(tree.Docs[0].Body, 0)
}

// parse converts a panic of the YAML parser on malformed input to an error.
func parse(data []byte) (f *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid YAML: %v", r)
		}
	}()
	return parser.ParseBytes(data, 0)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// A builder converts the tree of the YAML parser to Nodes.
type builder struct {
	file    string
	vars    map[string]string
	anchors map[string]*Node
	count   int // number of nodes, including those of aliases
}

func (b *builder) nodeAt(t *token.Token) *Node {
	n := &Node{file: b.file, line: 1, col: 1}
	if t != nil && t.Position != nil {
		n.line, n.col = t.Position.Line, t.Position.Column
	}
	return n
}

func (b *builder) build(a ast.Node, depth int) (*Node, error) {
	if a == nil {
		return b.nodeAt(nil), nil
	}
	n := b.nodeAt(a.GetToken())
	b.count++
	if b.count > maxNodes || depth > maxDepth {
		return nil, n.Errorf("the file has more than %d values or %d levels of nesting", maxNodes, maxDepth)
	}
	switch a := a.(type) {
	case *ast.NullNode:
		return n, nil
	case *ast.BoolNode:
		n.Kind, n.Bool, n.Text = Bool, a.Value, a.Token.Value
		return n, nil
	case *ast.IntegerNode:
		return b.integer(n, a)
	case *ast.FloatNode:
		return n.float(a.Value, a.Token), nil
	case *ast.InfinityNode:
		return n.float(a.Value, a.Token), nil
	case *ast.NanNode:
		return n.float(math.NaN(), a.Token), nil
	case *ast.StringNode:
		return b.plain(n, a)
	case *ast.LiteralNode:
		return b.text(n, a.Value.Value)
	case *ast.TagNode:
		return b.build(a.Value, depth+1)
	case *ast.AnchorNode:
		v, err := b.build(a.Value, depth+1)
		if err == nil {
			b.anchors[a.Name.GetToken().Value] = v
		}
		return v, err
	case *ast.AliasNode:
		return b.alias(n, a.Value.GetToken().Value)
	case *ast.SequenceNode:
		return b.sequence(n, a.Values, depth)
	case *ast.MappingNode:
		return b.mapping(n, a.Values, depth)
	case *ast.MappingValueNode:
		return b.mapping(n, []*ast.MappingValueNode{a}, depth)
	}
	return nil, n.Errorf("unsupported YAML")
}

func (n *Node) float(v float64, t *token.Token) *Node {
	n.Kind, n.Float, n.Text = Float, v, t.Value
	return n
}

// plain returns the node for text that the YAML parser did not convert. It may still be a variable
// or, unquoted, a number with an exponent.
func (b *builder) plain(n *Node, a *ast.StringNode) (*Node, error) {
	switch {
	case a.Token.Type == token.StringType && scientificPattern.MatchString(a.Value):
		return b.scientific(n, a.Value)
	case oneVariablePattern.MatchString(a.Value): // perhaps in quotes, which YAML needs within { }
		return b.variable(n, a.Value)
	}
	return b.text(n, a.Value)
}

func (b *builder) alias(n *Node, name string) (*Node, error) {
	v, ok := b.anchors[name]
	if !ok {
		return nil, n.Errorf("the alias *%s has no anchor before it", name)
	}
	if b.count += v.size(); b.count > maxNodes {
		return nil, n.Errorf("the file is too large: aliases of aliases")
	}
	return v, nil
}

func (b *builder) sequence(n *Node, values []ast.Node, depth int) (*Node, error) {
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

func (b *builder) integer(n *Node, a *ast.IntegerNode) (*Node, error) {
	n.Kind, n.Text = Int, a.Token.Value
	switch v := a.Value.(type) {
	case int64:
		n.Int = v
	case uint64:
		if v > math.MaxInt64 {
			return nil, n.Errorf("the number %s is too large", n.Text)
		}
		n.Int = int64(v)
	default:
		return nil, n.Errorf("%s is not a number", n.Text)
	}
	n.Float = float64(n.Int)
	return n, nil
}

// scientificPattern matches a number with an exponent that the YAML parser reads as text: 1e-05.
var scientificPattern = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$`)

func (b *builder) scientific(n *Node, s string) (*Node, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, n.Errorf("the number %s is too large", s)
	}
	n.Kind, n.Float, n.Text = Float, v, s
	return n, nil
}

// oneVariablePattern matches a text that consists of one variable.
var oneVariablePattern = regexp.MustCompile(`^\$\{[^}]*\}$`)

// variable returns the node of a text that is one variable: a number or boolean if the variable's
// value reads as one, so that `limit: ${LIMIT:-2000}` is a number.
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

func (b *builder) mapping(n *Node, entries []*ast.MappingValueNode, depth int) (*Node, error) {
	n.Kind = Map
	if len(entries) > 0 { // report the position of the first key, not of the mapping's token, a colon
		first := b.nodeAt(entries[0].Key.GetToken())
		n.line, n.col = first.line, first.col
	}
	seen := map[string]bool{}
	var merged []Pair
	for _, e := range entries {
		key := b.nodeAt(e.Key.GetToken())
		key.Kind, key.Text = String, e.Key.GetToken().Value
		value, err := b.build(e.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if e.Key.IsMergeKey() {
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
		if value.Kind == Null && (value.line == 1 && value.col == 1) { // a value that is left out
			value.line, value.col = key.line, key.col
		}
		n.Pairs = append(n.Pairs, Pair{Key: key, Value: value})
	}
	// Explicit keys override merged ones, and the first of several merged keys overrides the
	// others.
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
