package spec

import (
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/transform"
)

// A choice is one combination of the arguments of a transformation.
type choice struct {
	parameter []string // values that came from lists, as written in the study file
	titles    []string // of the parameters in lists, such as "angle (degrees)"
	args      transform.Args
}

// decodeArgs reads the arguments of a transformation as all combinations of the listed values.
// There are three forms: no arguments; the short form, a number, word or range, as in `rotate: 15`,
// which sets the parameters in k.Short; and a mapping of parameters. k describes the transformation
// and its parameters. In a mapping, the keys values and range also set the parameters in k.Short,
// as in `rotate: {values: [90, 180]}`.
func decodeArgs(k transform.Kind, n *config.Node) ([]choice, error) {
	out := []choice{{args: transform.Args{}}}
	if n.Kind == config.Null {
		return out, nil
	}
	var principal transform.Param // the first in k.Short: values of the short form must be valid for it
	if len(k.Short) > 0 {
		principal, _ = k.Param(k.Short[0])
	}
	if n.Kind != config.Map {
		if len(k.Short) == 0 {
			return nil, n.Errorf("%s has no short form: set its parameters by name (%s)", k.Name, strings.Join(paramNames(k), ", "))
		}
		values, err := decodeArg(principal, n)
		return combine(out, k.Short, principal.Title(), values), err
	}
	for _, p := range n.Pairs {
		var values []listedArg
		var err error
		names, listed := []string{p.Key.Text}, principal
		if isShort := p.Key.Text == "values" || p.Key.Text == "range"; isShort && len(k.Short) > 0 {
			names = k.Short
			values, err = decodeListed(principal, p.Key, p.Value)
		} else if param, ok := k.Param(p.Key.Text); ok {
			listed = param
			values, err = decodeArg(param, p.Value)
		} else {
			err = p.Key.Unknown("parameter of "+k.Name, paramNames(k))
		}
		// Each combination is at least one cell (unit of work) of the study.
		if err == nil && len(out)*len(values) > maxCells {
			err = p.Key.Errorf("these lists have more than %d combinations of values", maxCells)
		}
		if err != nil {
			return nil, err
		}
		out = combine(out, names, listed.Title(), values)
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

// A listedArg is an argument. If it comes from a list of values, text is its text in the study
// file, else "".
type listedArg struct {
	text string
	arg  transform.Arg
}

// decodeArg reads the value of a parameter, such as 30, horizontal, [-15, 15], {range: [-15, 15]}
// or {values: [90, 180]}.
func decodeArg(p transform.Param, n *config.Node) ([]listedArg, error) {
	switch n.Kind {
	case config.Map:
		if len(n.Pairs) == 1 {
			return decodeListed(p, n.Pairs[0].Key, n.Pairs[0].Value)
		}
		return nil, n.Errorf("%s is a number, a range [low, high], or {values: [...]}", p.Name)
	case config.List:
		d, err := decodeRange(n)
		if err != nil {
			return nil, err
		}
		return checkArg(p, n, listedArg{arg: d})
	}
	a, err := decodeScalar(n)
	if err != nil {
		return nil, err
	}
	return checkArg(p, n, listedArg{arg: a})
}

// decodeListed reads the value n of a key, range or values.
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
			checked, err := checkArg(p, item, listedArg{text: item.Text, arg: a})
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(out, func(o listedArg) bool { return o.text == item.Text }) {
				return nil, item.Errorf("the value %s occurs twice", item.Text)
			}
			out = append(out, checked...)
		}
		return out, nil
	}
	return nil, key.Unknown("key", []string{"values", "range"})
}

func decodeRange(n *config.Node) (transform.Distribution, error) {
	if len(n.Items) != 2 {
		return transform.Distribution{}, n.Errorf("a range has two ends, [low, high]; for a list of values write {values: [...]}")
	}
	low, err := n.Items[0].Number()
	if err != nil {
		return transform.Distribution{}, err
	}
	high, err := n.Items[1].Number()
	if err != nil {
		return transform.Distribution{}, err
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

// checkArg returns the argument as a list of one element, or an error if the parameter does not
// take it.
func checkArg(p transform.Param, n *config.Node, a listedArg) ([]listedArg, error) {
	if err := p.Check(a.arg); err != nil {
		return nil, n.Errorf("%w", err)
	}
	return []listedArg{a}, nil
}

// combine returns every combination of a choice with one of the values, which sets the named
// parameters.
func combine(choices []choice, names []string, title string, values []listedArg) []choice {
	var combined []choice
	for _, c := range choices {
		for _, v := range values {
			args := maps.Clone(c.args)
			for _, name := range names {
				args[name] = v.arg
			}
			parameter, titles := slices.Clip(c.parameter), slices.Clip(c.titles)
			if v.text != "" {
				parameter, titles = append(parameter, v.text), append(titles, title)
			}
			combined = append(combined, choice{parameter, titles, args})
		}
	}
	return combined
}

// canonicalArgs returns the arguments in the form that is hashed in the keys of cells, under which
// their results are stored.
func canonicalArgs(args transform.Args) map[string]any {
	out := map[string]any{}
	for name, a := range args {
		if d, ok := a.(transform.Distribution); ok {
			out[name] = []float64{d.Low, d.High}
		} else {
			out[name] = a
		}
	}
	return out
}
