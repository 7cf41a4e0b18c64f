package spec

import (
	"github.com/noether-ml/noether/internal/config"
)

// A Path is a path or URL in a study file. A relative path starts at the folder of that file.
type Path struct {
	text string
	node *config.Node // where the file has it
}

// DecodeNode implements config.Decoder.
func (p *Path) DecodeNode(n *config.Node) error {
	text, err := n.Scalar()
	if err == nil && text == "" {
		err = n.Errorf("the path is empty")
	}
	p.text, p.node = text, n
	return err
}

// JSONSchema implements config.Schemer.
func (Path) JSONSchema() map[string]any { return map[string]any{"type": "string"} }

// Errorf returns an error at the position of the path in the study file.
func (p Path) Errorf(format string, args ...any) error { return p.node.Errorf(format, args...) }

// String returns the path as the study file has it.
func (p Path) String() string { return p.text }
