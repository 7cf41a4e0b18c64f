package config

import (
	"bytes"
	"strconv"

	yaml "go.yaml.in/yaml/v3"
)

// Set sets the value of a key of a mapping to a text. A Node is a value of a YAML file.
func (n *Node) Set(key, text string) { n.set(key, &Node{Kind: String, Text: text}) }

// SetInt sets the value of a key of a mapping to a number.
func (n *Node) SetInt(key string, v int64) {
	n.set(key, &Node{Kind: Int, Int: v, Float: float64(v), Text: strconv.FormatInt(v, 10)})
}

func (n *Node) set(key string, v *Node) {
	v.file, v.line, v.col = n.file, n.line, n.col
	for i := range n.Pairs {
		if n.Pairs[i].Key.Text == key {
			n.Pairs[i].Value = v
			return
		}
	}
	k := &Node{Kind: String, Text: key, file: n.file, line: n.line, col: n.col}
	n.Pairs = append(n.Pairs, Pair{Key: k, Value: v})
}

// Encode writes a node as YAML, with variables (${NAME}) and aliases resolved.
func Encode(n *Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err := e.Encode(n.tree())
	return out.Bytes(), err
}

// tree returns the node for the YAML encoder. Numbers keep the form in which they were written:
// results are named by it, so 0.50 must not become 0.5.
func (n *Node) tree() *yaml.Node {
	out := &yaml.Node{Kind: yaml.ScalarNode, Value: n.Text}
	switch n.Kind {
	case Null:
		out.Tag, out.Value = "!!null", "null"
	case String:
		out.Tag = "!!str"
	case List:
		out.Kind = yaml.SequenceNode
		for _, item := range n.Items {
			out.Content = append(out.Content, item.tree())
		}
	case Map:
		out.Kind = yaml.MappingNode
		for _, p := range n.Pairs {
			out.Content = append(out.Content, p.Key.tree(), p.Value.tree())
		}
	}
	return out
}

// Clone returns a deep copy of n.
func (n *Node) Clone() *Node {
	out := *n
	out.Items, out.Pairs = nil, nil
	for _, item := range n.Items {
		out.Items = append(out.Items, item.Clone())
	}
	for _, p := range n.Pairs {
		out.Pairs = append(out.Pairs, Pair{p.Key.Clone(), p.Value.Clone()})
	}
	return &out
}
