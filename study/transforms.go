package study

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/transform"
)

// A Transform is an entry of transforms: a name, the transformation, how it is drawn and what it is applied to.
//
//	{name: quarter, rotate: {values: [90, 180, 270]}}
//	{name: tilt, rotate: [-15, 15], per: trial}
//	{name: shift-then-blur, sequence: [{translate: [-0.1, 0.1]}, {gaussian-blur: 1}], on: input}
type Transform struct {
	Name  string
	Per   string          // "sample": drawn anew for each sample; "trial": once for a trial
	On    string          // "input" or "activations"
	Cells []TransformCell // one for each value of a list; else one
}

// A TransformCell is a transformation with one value of each listed parameter.
type TransformCell struct {
	Parameter string // the value, as written to scores; "" where there is only one
	Law       transform.Transform
	Canonical any // JSON that tells it from every other

	number *transform.Law // what transform.Parameter of a draw lies within; nil where there is no such number
}

var transformKeys = []string{"name", "per", "on"}

func kindNames() []string {
	var names []string
	for _, k := range transform.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// DecodeNode implements config.Decoder.
func (t *Transform) DecodeNode(n *config.Node) error {
	t.Per, t.On = "sample", "input"
	if n.Kind == config.String { // `- grayscale`
		t.Name = n.Text
		return t.setCells(n, n, &config.Node{})
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
			return p.Key.Errorf("a second transformation, %q beside %q: write sequence: [...] for one after the other", key, kind.Text)
		default:
			kind, value = p.Key, p.Value
		}
	}
	if kind == nil {
		return n.Errorf("the transformation itself is missing: one of sequence, %s", strings.Join(kindNames(), ", "))
	}
	if t.Name == "" {
		t.Name = kind.Text
	}
	return t.setCells(n, kind, value)
}

func (t *Transform) setOption(key string, v *config.Node) error {
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

// setCells fills Cells and checks that what moves activations is geometric.
func (t *Transform) setCells(n, kind, value *config.Node) error {
	variants, err := decodeKind(kind, value)
	if err != nil {
		return err
	}
	for _, v := range variants {
		if t.On == "activations" && !transform.OnMaps(v.law) {
			return n.Errorf("%s cannot be applied to activations: it is about pictures, not about places", kind.Text)
		}
		t.Cells = append(t.Cells, TransformCell{Parameter: strings.Join(v.parameter, ","), Law: v.law, Canonical: v.canonical, number: v.number})
	}
	return nil
}

// A variant is a transformation with one choice from each of its lists of values.
type variant struct {
	parameter []string
	law       transform.Transform
	canonical any
	number    *transform.Law
}

// decodeKind reads `rotate: ...` or `sequence: [...]` as one variant for each combination of listed values.
func decodeKind(kind, value *config.Node) ([]variant, error) {
	if kind.Text == "sequence" {
		return decodeSequence(value)
	}
	k, ok := transform.Lookup(kind.Text)
	if !ok {
		return nil, kind.Unknown("transformation", append([]string{"sequence"}, kindNames()...))
	}
	choices, err := decodeArgs(k, value)
	if err != nil {
		return nil, err
	}
	var out []variant
	for _, c := range choices {
		law, err := k.Make(c.args)
		if err != nil {
			return nil, errorAt(value, kind).Errorf("%v", err)
		}
		out = append(out, variant{c.parameter, law, []any{k.Name, canonicalArgs(c.args)}, numberOf(k, c.args, law)})
	}
	return out, nil
}

// numberOf is the law of the number that describes the transformation's draws: of the first of its short parameters. Nil where draws
// have no such number.
func numberOf(k transform.Kind, args transform.Args, law transform.Transform) *transform.Law {
	if _, ok := transform.Parameter(law.Draw(rand.New(rand.NewPCG(1, 1)))); !ok || len(k.Short) == 0 {
		return nil
	}
	p, _ := k.Param(k.Short[0])
	arg := args[p.Name]
	if arg == nil {
		arg = p.Default
	}
	if number, ok := arg.(transform.Law); ok {
		return &number
	}
	return nil
}

// sweep is the transformation with all its values, as procedures see it.
func (t *Transform) sweep() *procedure.Transform {
	out := &procedure.Transform{Name: t.Name, Identity: canonicalJSON(t.canonical()), PerTrial: t.Per == "trial", Range: t.Cells[0].number}
	for _, c := range t.Cells {
		out.Values = append(out.Values, procedure.Value{Parameter: c.Parameter, Law: c.Law})
		if out.Range != nil && c.number != nil {
			wide := transform.Uniform(min(out.Range.Low, c.number.Low), max(out.Range.High, c.number.High))
			out.Range = &wide
		} else {
			out.Range = nil
		}
	}
	return out
}

// errorAt prefers the value's place, which an empty value does not have.
func errorAt(value, kind *config.Node) *config.Node {
	if value.Kind == config.Null {
		return kind
	}
	return value
}

func decodeSequence(value *config.Node) ([]variant, error) {
	if value.Kind != config.List || len(value.Items) == 0 {
		return nil, value.Errorf("a sequence is a list of transformations, such as [{rotate: 15}, {gaussian-blur: 1}]")
	}
	out := []variant{{canonical: []any{}}}
	var laws [][]transform.Transform = [][]transform.Transform{nil}
	for _, item := range value.Items {
		kind, arg := item, &config.Node{}
		if item.Kind == config.Map && len(item.Pairs) == 1 {
			kind, arg = item.Pairs[0].Key, item.Pairs[0].Value
		} else if item.Kind != config.String {
			return nil, item.Errorf("an item of a sequence is one transformation, such as {rotate: 15}")
		}
		steps, err := decodeKind(kind, arg)
		if err != nil {
			return nil, err
		}
		if len(out)*len(steps) > MaxCells {
			return nil, item.Errorf("this sequence has more than %d combinations of values", MaxCells)
		}
		var next []variant
		var nextLaws [][]transform.Transform
		for i, v := range out {
			for _, s := range steps {
				next = append(next, variant{
					parameter: append(slices.Clip(v.parameter), s.parameter...),
					canonical: append(slices.Clip(v.canonical.([]any)), s.canonical),
				})
				nextLaws = append(nextLaws, append(slices.Clip(laws[i]), s.law))
			}
		}
		out, laws = next, nextLaws
	}
	for i := range out {
		out[i].law = transform.Sequence(laws[i])
	}
	return out, nil
}

// A choice is one combination of arguments, with the text of those that came from lists.
type choice struct {
	parameter []string
	args      transform.Args
}

// decodeArgs reads the value of a kind: nothing; a number, word or range that stands for its short parameters; or a
// mapping of parameters, in which values and range stand for the short ones.
func decodeArgs(k transform.Kind, n *config.Node) ([]choice, error) {
	out := []choice{{args: transform.Args{}}}
	if n.Kind == config.Null {
		return out, nil
	}
	var principal transform.Param
	if len(k.Short) > 0 {
		principal, _ = k.Param(k.Short[0])
	}
	if n.Kind != config.Map {
		if len(k.Short) == 0 {
			return nil, n.Errorf("%s has no short form: name its parameters (%s)", k.Name, strings.Join(paramNames(k), ", "))
		}
		values, err := decodeArg(principal, n)
		return combine(out, k.Short, values), err
	}
	for _, p := range n.Pairs {
		var values []listedArg
		var err error
		names := []string{p.Key.Text}
		if isShort := p.Key.Text == "values" || p.Key.Text == "range"; isShort && len(k.Short) > 0 {
			names = k.Short
			values, err = decodeListed(principal, p.Key, p.Value)
		} else if param, ok := k.Param(p.Key.Text); ok {
			values, err = decodeArg(param, p.Value)
		} else {
			err = p.Key.Unknown("parameter of "+k.Name, paramNames(k))
		}
		if err == nil && len(out)*len(values) > MaxCells {
			err = p.Key.Errorf("these lists have more than %d combinations of values", MaxCells)
		}
		if err != nil {
			return nil, err
		}
		out = combine(out, names, values)
	}
	return out, nil
}

func paramNames(k transform.Kind) []string {
	names := make([]string, 0, len(k.Params)+2)
	for _, p := range k.Params {
		names = append(names, p.Name)
	}
	if len(k.Short) > 0 {
		names = append(names, "values", "range")
	}
	return names
}

// A listedArg is an argument, and its text if it is one of several.
type listedArg struct {
	text string
	arg  transform.Arg
}

// decodeArg reads 30, horizontal, [-15, 15], {range: [-15, 15]} or {values: [90, 180]}.
func decodeArg(p transform.Param, n *config.Node) ([]listedArg, error) {
	switch n.Kind {
	case config.Map:
		if len(n.Pairs) == 1 {
			return decodeListed(p, n.Pairs[0].Key, n.Pairs[0].Value)
		}
		return nil, n.Errorf("%s is a number, a range [low, high], or {values: [...]}", p.Name)
	case config.List:
		law, err := decodeRange(n)
		if err != nil {
			return nil, err
		}
		return checked(p, n, listedArg{arg: law})
	}
	a, err := decodeScalar(n)
	if err != nil {
		return nil, err
	}
	return checked(p, n, listedArg{arg: a})
}

func decodeListed(p transform.Param, key, n *config.Node) ([]listedArg, error) {
	switch key.Text {
	case "range":
		return decodeArg(p, n)
	case "values":
		if n.Kind != config.List || len(n.Items) == 0 {
			return nil, n.Errorf("values is a list, such as [90, 180, 270]")
		}
		var out []listedArg
		for _, item := range n.Items {
			a, err := decodeScalar(item)
			if err != nil {
				return nil, err
			}
			one, err := checked(p, item, listedArg{text: item.Text, arg: a})
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(out, func(o listedArg) bool { return o.text == item.Text }) {
				return nil, item.Errorf("the value %s stands twice", item.Text)
			}
			out = append(out, one...)
		}
		return out, nil
	}
	return nil, key.Unknown("key", []string{"values", "range"})
}

func decodeRange(n *config.Node) (transform.Law, error) {
	if len(n.Items) != 2 {
		return transform.Law{}, n.Errorf("a range has two ends, [low, high]; for a list of values write {values: [...]}")
	}
	low, err := n.Items[0].Number()
	if err != nil {
		return transform.Law{}, err
	}
	high, err := n.Items[1].Number()
	if err != nil {
		return transform.Law{}, err
	}
	return transform.Uniform(low, high), nil
}

func decodeScalar(n *config.Node) (transform.Arg, error) {
	if n.Kind == config.Int || n.Kind == config.Float {
		v, err := n.Number()
		return transform.Fixed(v), err
	}
	text, err := n.Scalar()
	return transform.Option(text), err
}

func checked(p transform.Param, n *config.Node, a listedArg) ([]listedArg, error) {
	if err := p.Check(a.arg); err != nil {
		return nil, n.Errorf("%v", err)
	}
	return []listedArg{a}, nil
}

// combine extends every choice so far by every value of the named parameters.
func combine(out []choice, names []string, values []listedArg) []choice {
	var next []choice
	for _, c := range out {
		for _, v := range values {
			args := transform.Args{}
			for k, a := range c.args {
				args[k] = a
			}
			for _, name := range names {
				args[name] = v.arg
			}
			parameter := slices.Clip(c.parameter)
			if v.text != "" {
				parameter = append(parameter, v.text)
			}
			next = append(next, choice{parameter, args})
		}
	}
	return next
}

func canonicalArgs(args transform.Args) map[string]any {
	out := map[string]any{}
	for name, a := range args {
		if law, ok := a.(transform.Law); ok {
			out[name] = []float64{law.Low, law.High}
		} else {
			out[name] = a
		}
	}
	return out
}

// JSONSchema implements config.Schemer.
func (Transform) JSONSchema() map[string]any {
	kinds := map[string]any{"sequence": map[string]any{
		"type": "array", "description": "transformations, one after the other", "minItems": 1,
		"items": map[string]any{"type": []string{"object", "string"}, "maxProperties": 1},
	}}
	for _, k := range transform.Kinds() {
		kinds[k.Name] = kindSchema(k)
	}
	kinds["name"] = map[string]any{"type": "string", "description": "name in the scores"}
	kinds["per"] = map[string]any{"enum": []string{"sample", "trial"}, "description": "draw anew for each sample (default), or once for a trial (what seis wants)"}
	kinds["on"] = map[string]any{"enum": []string{"input", "activations"}, "description": "what is moved: the input (default), or the feature maps themselves"}
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "object", "properties": kinds, "additionalProperties": false, "minProperties": 1},
		map[string]any{"enum": kindNames()},
	}}
}

func kindSchema(k transform.Kind) map[string]any {
	properties := map[string]any{}
	for _, p := range k.Params {
		properties[p.Name] = paramSchema(p)
	}
	forms := []any{}
	if len(k.Short) > 0 {
		principal, _ := k.Param(k.Short[0])
		short := paramSchema(principal)
		forms = append(forms, short["anyOf"].([]any)...)
		properties["values"] = listOfValues
		properties["range"] = rangeOfNumbers
	}
	forms = append(forms, map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false})
	return map[string]any{"description": k.Doc, "anyOf": forms}
}

var (
	rangeOfNumbers = map[string]any{"type": "array", "items": map[string]any{"type": "number"}, "minItems": 2, "maxItems": 2, "description": "drawn evenly between two ends"}
	listOfValues   = map[string]any{"type": "array", "items": map[string]any{"type": []string{"number", "string"}}, "minItems": 1, "description": "a cell for each"}
)

func paramSchema(p transform.Param) map[string]any {
	doc := p.Doc
	if p.Unit != "" {
		doc += " (" + p.Unit + ")"
	}
	values := map[string]any{"type": "object", "properties": map[string]any{"values": listOfValues, "range": rangeOfNumbers}, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}
	if p.Options != nil {
		return map[string]any{"description": doc, "anyOf": []any{map[string]any{"enum": p.Options}, values}}
	}
	return map[string]any{"description": doc, "anyOf": []any{map[string]any{"type": "number"}, rangeOfNumbers, values}}
}
