package spec

import (
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/fetch/uri"
)

// STIROptions are the settings of STIRStudy: which models of two studies are compared, and how.
type STIROptions struct {
	Models [][2]string // pairs of a model of the first study and one of the second
	Data   []string    // names, or patterns of names, of data in both studies; nil: the first data in both
	Layer  string      // pattern of one layer; "": the penultimate layers (inputs of the classifiers)
	Images int         // setting images of the measure stir: number of images
	Steps  int         // setting steps of the measure stir: gradient steps of an inversion
}

// STIRStudy returns a study that measures STIR (Similarity Through Inverted Representations,
// package stir) between models of two studies. Inversion finds images with the same representation
// in one model, the reference; the score says whether they also have it in the other. Each of the
// two models is the reference once. The study uses data whose name both studies have, as the first
// study defines them, the optimiser Adam and the first study's seed. The name of a model ends in
// (A) if it is of the first study, else in (B), as in "resnet20 (B)". Paths in the studies must be
// absolute, as in the study.yaml of a run folder. It is an error if a study lacks a model, if a
// model's file no longer exists, or if no data are selected.
func STIRStudy(a, b *Study, s STIROptions) (*Study, error) {
	data, err := s.data(a, b)
	if err != nil {
		return nil, err
	}
	var models, between []*config.Node
	seen := map[string]bool{}
	add := func(study *Study, name, side string) (string, error) {
		i := slices.IndexFunc(study.Models, func(m Model) bool { return m.Name == name })
		if i < 0 {
			return "", fmt.Errorf("%s has no model %s", study.path, name)
		}
		if err := study.checkModelFile(study.Models[i]); err != nil {
			return "", err
		}
		newName := name + " (" + side + ")"
		if !seen[newName] {
			models = append(models, s.model(study.Models[i].node, newName))
		}
		seen[newName] = true
		return newName, nil
	}
	for _, pair := range s.Models {
		first, err := add(a, pair[0], "A")
		if err != nil {
			return nil, err
		}
		second, err := add(b, pair[1], "B")
		if err != nil {
			return nil, err
		}
		between = append(between, list(text(first), text(second)), list(text(second), text(first)))
	}
	root := mapping("name", text("stir"), "data", list(data...), "models", list(models...),
		"measures", list(mapping("stir", s.settings(between))))
	root.SetInt("seed", int64(a.Seed))
	raw, err := config.Encode(root)
	if err != nil {
		return nil, err
	}
	return Parse("the study of STIR", raw, nil, a.lists)
}

// checkModelFile returns an error if the file of a model no longer exists.
func (s *Study) checkModelFile(m Model) error {
	path := s.Resolve(m.Address().text)
	if uri.IsURL(path) {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%s: the file of model %s, which STIR needs, no longer exists: %w", s.path, m.Name, err)
	}
	return nil
}

// data returns the selected entries of data of the first study whose names the second study also
// has. It is an error if there are none.
func (s STIROptions) data(a, b *Study) ([]*config.Node, error) {
	var out []*config.Node
	var common []string
	for _, d := range a.Data {
		if !slices.ContainsFunc(b.Data, func(o Data) bool { return o.Name == d.Name }) {
			continue
		}
		common = append(common, d.Name)
		if len(s.Data) == 0 && len(out) == 0 || slices.ContainsFunc(s.Data, func(p string) bool { return p == d.Name || matches(p, d.Name) }) {
			out = append(out, d.node)
		}
	}
	switch {
	case len(common) == 0:
		return nil, fmt.Errorf("%s and %s have no data of the same name", a.path, b.path)
	case len(out) == 0:
		return nil, fmt.Errorf("no data of both runs match %q; use one of %q", s.Data, common)
	}
	return out, nil
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// model returns an entry of models with another name, without tags (notes for the report), and with
// the selected layer alone, or the default layers if none is selected.
func (s STIROptions) model(entry *config.Node, newName string) *config.Node {
	m := entry.Clone()
	m.Set("name", newName)
	m.Pairs = slices.DeleteFunc(m.Pairs, func(p config.Pair) bool { return p.Key.Text == "layers" || p.Key.Text == "tags" })
	if s.Layer != "" {
		m.Pairs = append(m.Pairs, config.Pair{Key: text("layers"), Value: list(text(s.Layer))})
	}
	return m
}

// settings returns the settings of stir for pairs of models.
func (s STIROptions) settings(between []*config.Node) *config.Node {
	n := mapping("between", list(between...), "optimiser", text("adam"))
	if s.Layer != "" {
		n.Set("layers", "same")
	}
	n.SetInt("images", int64(s.Images))
	n.SetInt("steps", int64(s.Steps))
	return n
}

func text(s string) *config.Node { return &config.Node{Kind: config.String, Text: s} }

func list(items ...*config.Node) *config.Node { return &config.Node{Kind: config.List, Items: items} }

func mapping(pairs ...any) *config.Node {
	n := &config.Node{Kind: config.Map}
	for i := 0; i < len(pairs); i += 2 {
		n.Pairs = append(n.Pairs, config.Pair{Key: text(pairs[i].(string)), Value: pairs[i+1].(*config.Node)})
	}
	return n
}
