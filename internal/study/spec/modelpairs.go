package spec

import (
	"cmp"
	"slices"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
)

// Between is the value of the key between of an entry of measures: the pairs of models to compare,
// `[a, b]`, `[[a, b], [a, c]]`, or `all`.
type Between struct {
	All   bool // each pair of different models
	Pairs []modelPair

	node *config.Node // its position in the study file
}

// A modelPair is two models, or one model twice: its layers are then compared with each other.
type modelPair struct{ A, B modelName }

// A modelName is the name of a model, with its position in the study file.
type modelName struct {
	text string
	node *config.Node
}

// Given reports whether the entry of measures names pairs of models.
func (b Between) Given() bool { return b.All || len(b.Pairs) > 0 }

// DecodeNode implements config.Decoder.
func (b *Between) DecodeNode(n *config.Node) error {
	b.node = n
	if n.Kind == config.String && n.Text == "all" {
		b.All = true
		return nil
	}
	if n.Kind != config.List || len(n.Items) == 0 {
		return n.Errorf("between must be [a, b], [[a, b], [a, c]] or all")
	}
	if n.Items[0].Kind != config.List {
		pair, err := decodePair(n)
		b.Pairs = []modelPair{pair}
		return err
	}
	for _, item := range n.Items {
		pair, err := decodePair(item)
		if err != nil {
			return err
		}
		b.Pairs = append(b.Pairs, pair)
	}
	return nil
}

func decodePair(n *config.Node) (modelPair, error) {
	if n.Kind != config.List || len(n.Items) != 2 {
		return modelPair{}, n.Errorf("a pair is two models, such as [a, b]; several pairs are [[a, b], [a, c]]")
	}
	var names [2]modelName
	for i, item := range n.Items {
		text, err := item.Scalar()
		if err != nil {
			return modelPair{}, err
		}
		names[i] = modelName{text, item}
	}
	return modelPair{names[0], names[1]}, nil
}

// identities returns names for what the entry computes. No two entries of measures may share one,
// since a study computes each statistic only once. A method may occur once between models, and once
// between clean and transformed layers. If its settings choose statistics, there is a name for each
// of them.
func (m MeasureSpec) identities() []string {
	name := m.Name()
	if m.Between.Given() {
		name += " between models"
	}
	c, ok := m.Method.(interface{ Statistics() []string })
	if !ok {
		return []string{name}
	}
	var out []string
	for _, statistic := range c.Statistics() {
		out = append(out, statistic+" of "+name)
	}
	return out
}

// check returns an error for unknown models and repeated pairs, and for `all` with a single model.
func (b Between) check(models []Model) error {
	if b.All && len(models) < 2 {
		return b.node.Errorf("between: all needs at least two models; [%s, %[1]s] compares the layers of one model", models[0].Name)
	}
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	seen := map[[2]string]bool{}
	for _, p := range b.Pairs {
		for _, name := range []modelName{p.A, p.B} {
			if !slices.Contains(names, name.text) {
				return name.node.Unknown("model", names)
			}
		}
		key := [2]string{p.A.text, p.B.text}
		if seen[key] {
			return p.A.node.Errorf("the pair [%s, %s] occurs twice", key[0], key[1])
		}
		seen[key] = true
	}
	return nil
}

// ModelPairs returns the pairs of models that an entry compares, as indices into models. For
// `between: all`, each pair occurs once, or in both orders if the method is directional.
func (m MeasureSpec) ModelPairs(models []Model) [][2]int {
	var out [][2]int
	if m.Between.All {
		for a := range models {
			for b := range models {
				if a < b || a > b && m.Pairs.Directional {
					out = append(out, [2]int{a, b})
				}
			}
		}
		return out
	}
	indexOf := func(name modelName) int {
		return slices.IndexFunc(models, func(m Model) bool { return m.Name == name.text })
	}
	for _, p := range m.Between.Pairs {
		out = append(out, [2]int{indexOf(p.A), indexOf(p.B)})
	}
	return out
}

// countPairs returns the number of pairs that an entry compares in a study with the given number of
// models. It is a float64 so that a large number does not overflow.
func (m MeasureSpec) countPairs(models int) float64 {
	n := float64(models)
	switch {
	case m.Between.All && m.Pairs.Directional:
		return n * (n - 1)
	case m.Between.All:
		return n * (n - 1) / 2
	}
	return float64(len(m.Between.Pairs))
}

// pairings are the ways to pair the layers of two models; see LayerPairing.
var pairings = []string{measure.PairGrid, measure.PairSame, measure.PairMatched, measure.PairPenultimate}

// decodePairing reads the value of the key layers, which is one of pairings.
func decodePairing(n *config.Node) (string, error) {
	text, err := n.Scalar()
	if err == nil && !slices.Contains(pairings, text) {
		err = n.Unknown("way to pair layers", pairings)
	}
	return text, err
}

// LayerPairing returns how the entry pairs the layers of two models: one of pairings, or "" for a
// method that reads no layers.
func (m MeasureSpec) LayerPairing() string { return cmp.Or(m.pairing, m.Pairs.Layers) }

// WantsPenultimate reports whether some measure compares penultimate layers.
func (s *Study) WantsPenultimate() bool {
	return slices.ContainsFunc(s.Measures, func(m MeasureSpec) bool { return m.LayerPairing() == measure.PairPenultimate })
}

// addPairs adds the keys of model pairs to the schema of a method's settings. use says whether an
// entry must name pairs, and whether layers or only predictions are compared.
func addPairs(schema map[string]any, use PairUse) {
	name := map[string]any{"type": []string{"string", "number"}}
	pair := map[string]any{"type": "array", "items": name, "minItems": 2, "maxItems": 2}
	keys, _ := schema["properties"].(map[string]any)
	if keys == nil {
		keys = map[string]any{}
		schema["properties"] = keys
	}
	keys["between"] = map[string]any{
		"description": "pairs of models: [a, b], [[a, b], [a, c]], or all",
		"anyOf":       []any{map[string]any{"const": "all"}, pair, map[string]any{"type": "array", "items": pair, "minItems": 1}},
	}
	if use != PairsOfPredictions {
		layers := config.Words(pairings)
		layers["description"] = "how layers of two models are paired: all pairs (grid), by name or position (same), as the forms of one model are (matched), or the penultimate layers"
		keys["layers"] = layers
	}
	if use >= PairsRequired {
		required, _ := schema["required"].([]string)
		schema["required"] = append(required, "between")
	}
}
