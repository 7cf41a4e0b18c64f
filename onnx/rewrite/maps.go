package rewrite

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// WithoutMaps returns a model that has, in place of each output that is a sequence of maps from
// class to score, as exporters of scikit-learn write it, the tensor of the scores. The entry names
// of its metadata has the names of the classes, unless it exists or they are the numbers from 0 on.
func WithoutMaps(m *onnx.Model) *onnx.Model {
	g := m.Proto().Graph
	var outputs []*pb.ValueInfoProto
	taken := map[string]bool{}
	names := ""
	for _, out := range g.Output {
		taken[out.GetName()] = true
	}
	for i, out := range g.Output {
		at := slices.IndexFunc(g.Node, func(n *pb.NodeProto) bool {
			return n.GetOpType() == "ZipMap" && slices.Contains(n.Output, out.GetName())
		})
		if at < 0 || taken[g.Node[at].Input[0]] {
			continue
		}
		if outputs == nil {
			outputs = slices.Clone(g.Output)
		}
		labels := zipLabels(g.Node[at])
		shape := []onnx.Dim{{Size: -1}, {Size: len(labels)}}
		outputs[i] = onnx.ValueInfo{Name: g.Node[at].Input[0], Type: onnx.Float, Shape: shape}.Proto()
		names = namesText(labels)
	}
	if outputs == nil {
		return m
	}
	g = pbutil.Shallow(g)
	g.Output = outputs
	prune(g)
	out := m.WithGraph(g)
	if names != "" && m.Metadata("names") == "" {
		out = out.WithMetadata("names", names)
	}
	return out
}

// zipLabels returns the classes of a ZipMap.
func zipLabels(n *pb.NodeProto) (labels []string) {
	for _, a := range n.Attribute {
		for _, s := range a.Strings {
			labels = append(labels, string(s))
		}
		for _, v := range a.Ints {
			labels = append(labels, strconv.FormatInt(v, 10))
		}
	}
	return labels
}

// namesText returns labels as a list in JSON, or "" if they are the numbers from 0 on.
func namesText(labels []string) string {
	counted := true
	for i, name := range labels {
		counted = counted && name == strconv.Itoa(i)
	}
	if counted {
		return ""
	}
	text, err := json.Marshal(labels)
	if err != nil { // strings have no error
		panic(err)
	}
	return string(text)
}
