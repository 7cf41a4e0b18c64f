package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/parity"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// addLayersBetween compares layers of a with layers of b, both on T(x), or on x without a
// transformation, by a measure of one layer: that of b takes the place of the transformed one.
func (p *Plan) addLayersBetween(a, b *Model, d *Data, v View, spec spec.MeasureSpec) error {
	meas := spec.Method.(measure.Measure)
	c := &Cell{Model: a, other: b, Data: d, View: v, Method: meas}
	if v.On == "activations" {
		p.skip(c, "", "a transformation of activations does not apply between models")
		return nil
	}
	layersA, layersB, pairs, err := pairLayers(spec, a, b)
	if err != nil {
		return err
	}
	if spec.LayerPairing() == measure.PairMatched {
		p.skipUnmatched(c, a, b)
	}
	for _, at := range pairs {
		one, two := layersA[at[0]], layersB[at[1]]
		pair, ok := parity.PairOf(one, two)
		if !ok {
			p.skip(c, one.Name+" and "+two.Name, fmt.Sprintf("the layers have shapes %v and %v", one.Shape, two.Shape))
			continue
		}
		site := measure.Site{
			Layer: one, Layout: d.Layout, Classes: d.Source.Classes(), KeepSamples: p.Study.Samples,
			PerSample: v.Transform != nil && v.Per == "sample" && transform.Random(v.Transform),
			Budget:    int64(p.Study.Memory), Key: p.key(c),
		}
		if why := meas.Skip(site); why != "" {
			p.skip(c, one.Name, why)
			continue
		}
		target := &siteTarget{measure: meas, model: a, other: b, pair: &pair, site: site, transformed: v.Name != ""}
		t := &Task{target: target, Cell: c, FullCost: meas.Cost(site)}
		t.cost = t.FullCost
		c.Tasks = append(c.Tasks, t)
	}
	p.add(c)
	return nil
}

// skipUnmatched records the layers of a that b computes too, but that no name and no shape
// identifies.
func (p *Plan) skipUnmatched(c *Cell, a, b *Model) {
	pairs, _ := parity.Match(a.Net, b.Net)
	for _, m := range pairs {
		if m.Doubt != "" && hasLayer(a.layers, m.Original) && hasLayer(b.layers, m.Other) {
			p.skip(c, m.Original.Name, m.Doubt)
		}
	}
}

// matchedLayers returns the pairs of layers of two forms of one model that are certain, as indices.
func matchedLayers(a, b *Model) ([][2]int, error) {
	index := func(layers []tensor.Layer, l tensor.Layer) int {
		return slices.IndexFunc(layers, func(o tensor.Layer) bool { return o.Name == l.Name })
	}
	matched, _ := parity.Match(a.Net, b.Net)
	var pairs [][2]int
	for _, m := range matched {
		i, j := index(a.layers, m.Original), index(b.layers, m.Other)
		if m.Doubt == "" && i >= 0 && j >= 0 {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	if len(pairs) == 0 {
		return nil, errors.New("no name, module or order matches layers of the two models: write layers: same, or grid")
	}
	return pairs, nil
}

func hasLayer(layers []tensor.Layer, l tensor.Layer) bool {
	return slices.ContainsFunc(layers, func(o tensor.Layer) bool { return o.Name == l.Name })
}
