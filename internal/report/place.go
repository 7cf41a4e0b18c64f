package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/noether-ml/noether/scores"
)

// Places names the layers of models by their order and their module.
type Places struct {
	byLayer map[[2]string]string // by model and layer
}

// NewPlaces returns the places of the layers in rows: their order by depth among the layers of the
// model that have scores.
func NewPlaces(rows []scores.Row) Places {
	type place struct {
		name  string
		depth int
	}
	layers := map[string][]place{}
	seen := map[[2]string]bool{}
	for i := range rows {
		r := &rows[i]
		if key := [2]string{r.Model, r.Layer}; r.Layer != "" && r.Depth >= 0 && !seen[key] {
			seen[key] = true
			layers[r.Model] = append(layers[r.Model], place{r.Layer, r.Depth})
		}
	}
	p := Places{map[[2]string]string{}}
	for model, ordered := range layers {
		slices.SortStableFunc(ordered, func(a, b place) int { return a.depth - b.depth })
		for i, l := range ordered {
			text := fmt.Sprintf("layer %d of %d", i+1, len(ordered))
			if m := moduleOf(l.name); m != "" {
				text += " (" + m + ")"
			}
			p.byLayer[[2]string{model, l.name}] = text
		}
	}
	return p
}

// minMainLayers is the smallest number of layers outside of branches for which the layers of
// branches are drawn as curves of their own.
const minMainLayers = 3

// Branches returns a function that reports whether a row is of a layer inside a branch: a path of
// the graph that a shortcut passes by, as in a residual block. The function returns false for all
// layers of a model in which nearly all layers are in branches, such as a DenseNet.
func Branches(models []scores.ModelRecord) func(*scores.Row) bool {
	inside := map[[2]string]bool{}
	for _, m := range models {
		outside := 0 // layers outside of branches
		for _, l := range m.Layers {
			if !l.Branch {
				outside++
			}
		}
		for _, l := range m.Layers {
			inside[[2]string{m.Name, l.Name}] = l.Branch && outside >= minMainLayers
		}
	}
	return func(r *scores.Row) bool { return inside[[2]string{r.Model, r.Layer}] }
}

// Of returns the place of a layer, such as "layer 7 of 20 (layer2.1)", or "" if it is not known.
func (p Places) Of(model, layer string) string { return p.byLayer[[2]string{model, layer}] }

// maxModuleWidth is the maximum width of the name of a module, see Shorten.
const maxModuleWidth = 24

// moduleOf returns the first numbered module in the name of a tensor that PyTorch exported, such as
// "layer2.1" for "/layer2/layer2.1/relu/Relu_output_0", or else the outermost module. It returns ""
// if the name has none.
func moduleOf(tensor string) string {
	parts := strings.Split(strings.Trim(tensor, "/"), "/")
	parts = parts[:len(parts)-1] // without the operator
	for _, part := range parts {
		if i := strings.LastIndex(part, "."); i > 0 && i < len(part)-1 && unicode.IsDigit(rune(part[i+1])) {
			return Shorten(part, maxModuleWidth)
		}
	}
	if len(parts) > 0 {
		return Shorten(parts[0], maxModuleWidth)
	}
	return ""
}
