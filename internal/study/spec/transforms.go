package spec

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/transform"
)

// A Transform is an entry of the list transforms: a name, the transformation, how its parameters
// are drawn and what it is applied to.
//
//	{name: quarter, rotate: {values: [90, 180, 270]}}
//	{name: tilt, rotate: [-15, 15], per: trial}
//	{name: shift-then-blur, sequence: [{translate: [-0.1, 0.1]}, {gaussian-blur: 1}], on: input}
type Transform struct {
	Name  string
	Kind  string          // such as rotate, or sequence
	Per   string          // "sample": drawn for each sample; "trial": once per repetition of all draws
	On    string          // "input" or "activations"
	Cells []TransformCell // one for each value of a list; else one
	// Listed is the title of the listed parameters, such as "angle (degrees)"; "" if none has a
	// list.
	Listed string
	// Tolerances are what scores under the transformation must keep to; Search chooses values by
	// them. It is nil unless the study has `values: auto`.
	Tolerances []scores.Tolerance
	Search     *Search

	node      *config.Node   // the entry in the file
	positions []*config.Node // of Tolerances
}

// A TransformCell is a transformation with one value of each listed parameter.
type TransformCell struct {
	Parameter string // the values as written to scores, joined by commas; "" if no parameter has a list
	Transform transform.Transform
	Canonical any // form of the transformation that the cell's key depends on

	// Number is the distribution of the number that describes a draw, such as the angle of a
	// rotation; see transform.Parameter. It is nil if no single number describes a draw.
	Number *transform.Distribution
}

var transformKeys = []string{"name", "per", "on", "tolerance"}

// kinds are the kinds of transformations that a study file can name.
type kinds []transform.Kind

func (all kinds) names() []string {
	var names []string
	for _, k := range all {
		names = append(names, k.Name)
	}
	return names
}

// DecodeNode implements config.Decoder. Decode reads the entry once the kinds are known.
func (t *Transform) DecodeNode(n *config.Node) error {
	t.node = n
	return nil
}

// Decode reads the entry, which is of one of the kinds.
func (t *Transform) Decode(all []transform.Kind) error {
	n := t.node
	t.Per, t.On = "sample", "input"
	if n.Kind == config.String { // `- grayscale`
		t.Name = n.Text
		return t.setCells(all, n, &config.Node{})
	}
	if n.Kind != config.Map {
		return n.Errorf("a transformation is a mapping such as {name: quarter, rotate: {values: [90, 180]}}, not %s", n.Kind)
	}
	var kind, value *config.Node
	for _, p := range n.Pairs {
		switch key := p.Key.Text; {
		case slices.Contains(transformKeys, key):
			if err := t.setOption(key, p.Value); err != nil {
				return err
			}
		case kind != nil:
			return p.Key.Errorf("two transformations, %q and %q: write sequence: [...] to apply them in order", key, kind.Text)
		default:
			kind, value = p.Key, p.Value
		}
	}
	if kind == nil {
		return n.Errorf("the transformation is missing: add one of sequence, %s", strings.Join(kinds(all).names(), ", "))
	}
	t.Name = cmp.Or(t.Name, kind.Text)
	for i := range t.Tolerances {
		t.Tolerances[i].Selector.Transform = t.Name
	}
	var err error
	if value, t.Search, err = takeSearch(all, kind, value); err != nil {
		return err
	}
	if t.Search != nil {
		if len(t.Tolerances) == 0 {
			return t.Search.list.Errorf("values: auto looks for the strength at which a score leaves a tolerance: add one to the transformation, such as tolerance: effective-invariance.ei >= 0.9")
		}
		n.SetNode(kind.Text, value) // the resolved study lists the values
	}
	if err := t.setCells(all, kind, value); err != nil {
		return err
	}
	if t.Search != nil && strings.Contains(t.Cells[0].Parameter, ",") {
		return t.Search.list.Errorf("values: auto needs to be alone, without lists of values of other parameters: write an entry of transforms for each of these")
	}
	return nil
}

func (t *Transform) setOption(key string, v *config.Node) error {
	if key == "tolerance" {
		return t.decodeTolerances(v)
	}
	text, err := v.Scalar()
	if err != nil {
		return err
	}
	var known []string
	switch key {
	case "name":
		t.Name = text
		return nil
	case "per":
		t.Per, known = text, []string{"sample", "trial"}
	case "on":
		t.On, known = text, []string{"input", "activations"}
	}
	if !slices.Contains(known, text) {
		return v.Unknown(key, known)
	}
	return nil
}

// setCells fills Cells. It returns an error if On is activations and the transformation cannot be
// applied to feature maps (see transform.OnMaps).
func (t *Transform) setCells(all kinds, kind, value *config.Node) error {
	variants, err := all.decode(kind, value)
	if err != nil {
		return err
	}
	t.Kind, t.Listed = kind.Text, strings.Join(variants[0].titles, ", ")
	for _, v := range variants {
		if t.On == "activations" && !transform.OnMaps(v.transform) {
			return t.node.Errorf("%s cannot be applied to activations: it is not geometric", kind.Text)
		}
		t.Cells = append(t.Cells, TransformCell{Parameter: strings.Join(v.parameter, ","), Transform: v.transform, Canonical: v.canonical, Number: v.number})
	}
	return nil
}

// A variant is a transformation with one value from each of its lists.
type variant struct {
	parameter []string // values that came from lists, as written in the study file
	titles    []string // of the parameters in lists, such as "angle (degrees)"
	transform transform.Transform
	canonical any                     // as in TransformCell
	number    *transform.Distribution // as in TransformCell
}

// decode reads `rotate: ...` or `sequence: [...]` as one variant for each combination of listed
// values.
func (all kinds) decode(kind, value *config.Node) ([]variant, error) {
	if kind.Text == "sequence" {
		return all.decodeSequence(value)
	}
	i := slices.IndexFunc(all, func(k transform.Kind) bool { return k.Name == kind.Text })
	if i < 0 {
		return nil, kind.Unknown("transformation", append([]string{"sequence"}, all.names()...))
	}
	k := all[i]
	choices, err := decodeArgs(k, value)
	if err != nil {
		return nil, err
	}
	var out []variant
	for _, c := range choices {
		t, err := k.Make(c.args)
		if err != nil {
			return nil, errorAt(value, kind).Errorf("%w", err)
		}
		canonical := []any{k.Name, canonicalArgs(c.args)}
		// The version of a transformation grows when its outputs change. Version 1 has no entry, so
		// that older keys stay valid.
		if v := transform.Version(t); v > 1 {
			canonical = append(canonical, v)
		}
		out = append(out, variant{c.parameter, c.titles, t, canonical, numberOf(k, c.args, t)})
	}
	return out, nil
}

// numberOf returns the distribution of the number that describes a draw: that of the kind's main
// parameter, the first in transform.Kind.Short. It is nil if draws have no such number.
func numberOf(k transform.Kind, args transform.Args, t transform.Transform) *transform.Distribution {
	// Any draw tells whether the transformation has such a number.
	if _, ok := transform.Parameter(t.Draw(rand.New(rand.NewPCG(1, 1)))); !ok || len(k.Short) == 0 {
		return nil
	}
	p, _ := k.Param(k.Short[0])
	arg := args[p.Name]
	if arg == nil {
		arg = p.Default
	}
	if number, ok := arg.(transform.Distribution); ok {
		return &number
	}
	return nil
}

// errorAt returns the node to report errors at: the value, or the kind if the value is empty.
func errorAt(value, kind *config.Node) *config.Node {
	if value.Kind == config.Null {
		return kind
	}
	return value
}

// decodeSequence reads the list of a sequence as one variant for each combination of listed values.
func (all kinds) decodeSequence(value *config.Node) ([]variant, error) {
	if value.Kind != config.List || len(value.Items) == 0 {
		return nil, value.Errorf("a sequence is a list of transformations, such as [{rotate: 15}, {gaussian-blur: 1}]")
	}
	out := []variant{{canonical: []any{}}}
	sequences := [][]transform.Transform{nil} // the transformations of each variant in out
	for _, item := range value.Items {
		kind, arg := item, &config.Node{}
		if item.Kind == config.Map && len(item.Pairs) == 1 {
			kind, arg = item.Pairs[0].Key, item.Pairs[0].Value
		} else if item.Kind != config.String {
			return nil, item.Errorf("an item of a sequence is one transformation, such as {rotate: 15}")
		}
		steps, err := all.decode(kind, arg)
		if err != nil {
			return nil, err
		}
		if len(out)*len(steps) > maxCells {
			return nil, item.Errorf("this sequence has more than %d combinations of values", maxCells)
		}
		var next []variant
		var nextSequences [][]transform.Transform
		for i, v := range out {
			for _, s := range steps {
				next = append(next, variant{
					parameter: append(slices.Clip(v.parameter), s.parameter...),
					titles:    append(slices.Clip(v.titles), s.titles...),
					canonical: append(slices.Clip(v.canonical.([]any)), s.canonical),
				})
				nextSequences = append(nextSequences, append(slices.Clip(sequences[i]), s.transform))
			}
		}
		out, sequences = next, nextSequences
	}
	for i := range out {
		out[i].transform = transform.Sequence(sequences[i])
	}
	return out, nil
}

// CanonicalForm returns a value that identifies the transformation with all its values, for keys.
func (t *Transform) CanonicalForm() []any {
	var out []any
	for _, c := range t.Cells {
		out = append(out, []any{c.Parameter, c.Canonical})
	}
	return out
}
