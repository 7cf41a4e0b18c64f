package output

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/onnx"
)

// A layout describes outputs of a model that can be decoded into boxes, keypoints or values for
// positions in the image.
type layout struct {
	name  string
	needs string // what outputs the ONNX file must have, for errors
	// several reports whether the layout has several outputs, which makes it hard to confuse with
	// others.
	several bool
	// find returns a decoder for the ports, or nil if they do not have this layout. Method finish
	// sets the rest of the decoder, such as the least confidence of boxes. If guess is set, find
	// returns a decoder only if it is unlikely that the outputs have another meaning.
	find func(q *query, guess bool) *Decoder
}

// A query is a search for a layout among the outputs of a model, its ports.
type query struct {
	about   *About  // what is known about the model
	setting Setting // the user's: names of outputs and of their layout, and limits
	ports   []Port  // those that the setting names, or all
}

// boxLayouts are the layouts of boxes, the most specific first.
var boxLayouts = []layout{
	{"torchvision", "boxes [n, 4], labels (int64) [n] and scores [n]", true, findTorchvision},
	{"efficient-nms", "counts [batch, 1], boxes [batch, n, 4], scores [batch, n] and classes [batch, n]", true, findEfficientNMS},
	{"labelled", "boxes [batch, n, 4] of corners, labels [batch, n] and scores [batch, n], or boxes [batch, n, 5] with the score, and labels", true, findLabelled},
	{"corners", "boxes [batch, n, 4] of corners and probabilities [batch, n, classes]", true, findCorners},
	{"detr", "logits [batch, queries, classes + 1] and boxes [batch, queries, 4]", true, findDETR},
	{"deformable-detr", "logits [batch, queries, classes] and boxes [batch, queries, 4]", true, findDeformableDETR},
	{"suppressed", "rows [batch, n, 6] or [n, 6] of corners, score and class, perhaps with keypoints or coefficients of masks, or [n, 7] with the index of the image in front and the class before the score", false, findSuppressed},
	{"yolov10", "rows [batch, n, 6] of corners, score and class, or [batch, 4 + classes, anchors]", false, findYOLOv10},
	{"yolov8", "[batch, 4 + classes, anchors], or its transpose", false, findYOLOv8},
	{"yolox", "[batch, anchors, 5 + classes] with one anchor for each cell of 8, 16 and 32 pixels", false, findYOLOX},
	{"yolov5", "[batch, anchors, 5 + classes], or its transpose", false, findYOLOv5},
}

var classMapLayouts = []layout{
	{"logits", "one map of floats [batch, classes, height, width]", false, findLogits},
	{"probabilities", "one map of floats [batch, classes, height, width]", false, findProbabilities},
	{"labels", "one map of integers [batch, height, width] or [batch, 1, height, width]", false, findLabels},
}

var keypointLayouts = []layout{
	{"heat-maps", "one map of floats [batch, keypoints, height, width]", false, findHeatMaps},
}

var valueLayouts = []layout{
	{"normals", "one map of floats [batch, 3, height, width]", false, findNormals(decoded.YDown)},
	{"normals-y-up", "one map of floats [batch, 3, height, width]", false, findNormals(decoded.YUp)},
	{"image", "one map of floats [batch, channels, height, width]", false, findImage},
	{"depth", "one map of floats [batch, height, width] or [batch, 1, height, width]", false, findDepth},
	{"map", "one map of floats [batch, channels, height, width] or [batch, height, width]", false, findMap},
}

// Find returns the decoder of a model's outputs. It is nil without an error if the setting names no
// kind of output (boxes, a class map, keypoints or values) and no layout is recognised.
func Find(about About, s Setting) (*Decoder, error) {
	q := &query{about: &about, setting: s, ports: about.Ports}
	if len(s.Outputs) > 0 {
		q.ports = nil
		for _, name := range s.Outputs {
			i := slices.IndexFunc(about.Ports, func(p Port) bool { return p.Name == name })
			if i < 0 {
				return nil, fmt.Errorf("unknown output %q: the model has %s", name, listPorts(about.Ports))
			}
			q.ports = append(q.ports, about.Ports[i])
		}
	}
	var d *Decoder
	var err error
	if s.IsSet() {
		d, err = q.named()
	} else {
		d = q.guess()
	}
	if d == nil || err != nil {
		return nil, err
	}
	err = q.finish(d)
	q.doubt(d)
	return d, err
}

// named returns the decoder that the setting names.
func (q *query) named() (*Decoder, error) {
	for _, group := range []struct {
		key, name string
		layouts   []layout
	}{{"boxes", q.setting.Boxes, boxLayouts}, {"class-map", q.setting.ClassMap, classMapLayouts}, {"keypoints", q.setting.Keypoints, keypointLayouts}, {"values", q.setting.Values, valueLayouts}} {
		if group.name == "" {
			continue
		}
		i := slices.IndexFunc(group.layouts, func(l layout) bool { return l.name == group.name })
		if i < 0 {
			var names []string
			for _, l := range group.layouts {
				names = append(names, l.name)
			}
			return nil, fmt.Errorf("%s: unknown layout %q: use %s", group.key, group.name, strings.Join(names, ", "))
		}
		l := group.layouts[i]
		if d := l.find(q, false); d != nil {
			d.Format.Layout = l.name
			return d, nil
		}
		return nil, fmt.Errorf("%s: %s needs the outputs %s; the model has %s", group.key, l.name, l.needs, listPorts(q.ports))
	}
	return nil, nil
}

// guess returns the decoder of the first layout that is recognised, or nil. If an output may score
// classes of the whole image, only layouts with several outputs are tried.
func (q *query) guess() *Decoder {
	layouts := slices.Concat(boxLayouts, keypointLayouts, classMapLayouts, valueLayouts)
	if q.about.Scored {
		layouts = slices.DeleteFunc(layouts, func(l layout) bool { return !l.several })
	}
	for _, l := range layouts {
		if d := l.find(q, true); d != nil {
			d.Format.Layout, d.Guessed = l.name, true
			return d
		}
	}
	return nil
}

// mapClasses are the numbers of classes of the data sets that most models of class maps are trained
// on: two, Cityscapes, Pascal VOC, COCO-Stuff and ADE20K.
var mapClasses = []int{2, 19, 21, 150, 171, 182}

// doubt sets the doubt of a class map of which nothing but its shape says that its channels are
// classes: neither a name, a softmax, names of classes nor their number.
func (q *query) doubt(d *Decoder) {
	f := &d.Format
	if !d.Guessed || f.Kind != decoded.ClassMap || len(f.Names) > 0 || f.Layout == "labels" {
		return
	}
	p := q.ports[slices.IndexFunc(q.ports, func(p Port) bool { return p.Name == f.Outputs[0] })]
	axis := 0
	if p.Probed.sums(len(p.Sample) - 1) {
		axis = len(p.Sample) - 1
	}
	switch {
	case p.named("logit", "seg", "mask", "sem", "class", "label", "prob", "pred"), strings.HasSuffix(p.After, "Softmax"), p.Probed.sums(axis):
	case p.After == "" && slices.Contains(mapClasses, f.Classes), p.After == sigmoid && len(q.ports) == 1 && f.Classes == 2 && p.Sample[0] == 1:
	default:
		d.Doubt = fmt.Sprintf("output %q is taken for a map of %d classes, which only its shape says: set output: {class-map: %s} if it is one, or such as {values: map}", p.Name, f.Classes, f.Layout)
	}
}

// maxCandidates is the largest number of boxes that a model may have for one image.
const maxCandidates = 1_000_000

// finish completes a decoder from the settings, and checks it. A PointList is one of keypoints, a
// BoxList one of boxes; the other kinds are maps. Confidence is the least score of a box that is
// kept, or of a visible keypoint. For boxes, Suppress is the IoU (intersection over union) above
// which non-maximum suppression drops one, and Most the largest number that is kept. d.boxes is the
// number before that, or -1 if it varies.
func (q *query) finish(d *Decoder) error {
	f, s := &d.Format, q.setting
	if f.Kind == decoded.PointList {
		f.Confidence = s.Confidence
		return nil
	}
	if f.Kind != decoded.BoxList {
		if f.Height*f.Width < 2 {
			return fmt.Errorf("output %s has maps of %d x %d: a single position has no place in the image", f.Outputs[0], f.Height, f.Width)
		}
		return q.nameClasses(f)
	}
	if d.boxes > maxCandidates {
		return fmt.Errorf("output %s has %d boxes for an image, more than %d: export the model with suppression", f.Outputs[0], d.boxes, maxCandidates)
	}
	if f.Confidence = s.Confidence; f.Confidence == 0 {
		f.Confidence = 0.01
	}
	if s.Suppress > 0 {
		f.Suppress = s.Suppress
	}
	if f.Most = s.Most; f.Most == 0 {
		f.Most = 300
	}
	return q.nameClasses(f)
}

// nameClasses sets the number of classes, if the layout does not have it, and their names if there
// are as many. It returns an error if the setting contradicts the number of the layout.
func (q *query) nameClasses(f *decoded.Format) error {
	if f.Kind == decoded.ValueMap {
		return nil
	}
	names := q.names()
	if n := q.setting.Classes; n > 0 {
		if f.Classes > 0 && f.Classes != n {
			return fmt.Errorf("output: classes is %d, and output %s has %d", n, f.Outputs[0], f.Classes)
		}
		f.Classes = n
	}
	f.Classes = cmp.Or(f.Classes, len(names))
	if len(names) == f.Classes {
		f.Names = names
	}
	return nil
}

// names returns the names of the classes in the metadata of the file or beside it, or nil.
func (q *query) names() []string {
	if q.about.Metadata != nil {
		if names := ParseNames(q.about.Metadata("names")); names != nil {
			return names
		}
	}
	return q.about.Names
}

// metadata returns an entry of the metadata of the file, or "".
func (q *query) metadata(key string) string {
	if q.about.Metadata == nil {
		return ""
	}
	return q.about.Metadata(key)
}

// only returns the port that satisfies a condition, or nil if there is none or more than one.
func (q *query) only(fits func(p *Port) bool) *Port {
	var found *Port
	for i := range q.ports {
		if !fits(&q.ports[i]) {
			continue
		}
		if found != nil {
			return nil
		}
		found = &q.ports[i]
	}
	return found
}

// isFloat reports whether the elements are float32 or float64.
func (p *Port) isFloat() bool { return p.Type == onnx.Float || p.Type == onnx.Double }

// isInteger reports whether the elements are integers.
func (p *Port) isInteger() bool {
	switch p.Type {
	case onnx.Int64, onnx.Int32, onnx.Uint8, onnx.Int8:
		return true
	}
	return false
}

// named reports whether the name of the port contains one of the words.
func (p *Port) named(words ...string) bool {
	name := strings.ToLower(p.Name)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

// unbatched reports whether the port is declared with the given rank, which leaves no room for a
// batch axis, and the size of its last axis is dynamic or the given one; 0: any.
func (p *Port) unbatched(rank, last int) bool {
	if len(p.Sizes) != rank {
		return false
	}
	return last == 0 || p.Sizes[rank-1] == last || p.Sizes[rank-1] < 0
}

// listPorts describes ports in an error: their names, types and shapes. Sizes is the declared shape
// (-1: any size), and Sample the shape of one sample, without the batch axis.
func listPorts(ports []Port) string {
	if len(ports) == 0 {
		return "none"
	}
	var texts []string
	for _, p := range ports {
		info := onnx.ValueInfo{Name: p.Name, Type: p.Type}
		if p.Sizes == nil && p.Sample != nil {
			p.Sizes = append([]int{-1}, p.Sample...)
		}
		for i, d := range p.Sizes {
			dim := onnx.Dim{Size: d}
			if i > 0 && len(p.Sample) == len(p.Sizes)-1 {
				dim.Size = p.Sample[i-1]
			} else if i == 0 && d < 0 && p.Sample != nil {
				dim.Symbol = "batch"
			}
			info.Shape = append(info.Shape, dim)
		}
		texts = append(texts, info.String())
	}
	return strings.Join(texts, ", ")
}
