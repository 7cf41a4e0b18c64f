package recipe

import (
	"cmp"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
)

// classesTarget names the classes as the target of a task. The tasks of a training file are what a
// network learns besides its target: a segmenter besides the masks, the classes of pixels.
const classesTarget = "classes"

// target returns the target of the main loss, besides which tasks have losses of their own: "" for
// classes, a factor, or a target that is computed from masks: the masks, or presence, the classes
// that a mask has.
func (f *File) target() string {
	if f.Target == "" && f.Network.Segment != nil {
		return train.MaskTarget
	}
	return f.Target
}

// stream returns the name of the target in train.Stream, which reads the samples.
func (k *taskKeys) stream() string {
	if k.Target == classesTarget {
		return ""
	}
	return k.Target
}

func (f *File) checkTargets() error {
	target, network := f.target(), f.node.Get("network")
	switch {
	case f.Network.Segment != nil && target != train.MaskTarget:
		return f.node.Get("target").Errorf("a segmenter learns masks, and the target is %q: write it under tasks", target)
	case target == train.MaskTarget && f.Network.Segment == nil && f.Network.ONNX == nil:
		return network.Errorf("masks need a segmenter")
	case len(f.Tasks) > 0 && f.Network.Segment == nil && f.Network.ONNX == nil:
		return f.node.Get("tasks").Errorf("several tasks need a segmenter, or an onnx network with an output for each")
	case len(f.Tasks) > 0 && f.Network.ONNX != nil && f.Network.ONNX.Output == "":
		return network.Errorf("with tasks, output must name the output for the main loss")
	case target == train.MaskTarget && f.Adversarial != nil:
		return f.node.Get("adversarial").Errorf("masks cannot be learned on adversarial examples")
	case len(f.Tasks) > 0 && f.Adversarial != nil:
		return f.node.Get("tasks").Errorf("several tasks cannot be learned on adversarial examples")
	}
	for i, t := range f.Tasks {
		switch {
		case t.Target == train.MaskTarget && f.Network.Segment != nil:
			return f.node.Get("tasks").Errorf("the mask is the target of the segmenter itself")
		case t.Output != "" && f.Network.ONNX == nil:
			return f.node.Get("tasks").Errorf("output is for an onnx network: those of a segmenter have the names of the targets")
		case t.Target == f.target() || t.stream() == f.target():
			return f.node.Get("tasks").Errorf("the target %q is that of the main loss", t.Target)
		case slices.ContainsFunc(f.Tasks[:i], func(o taskKeys) bool { return o.Target == t.Target }):
			return f.node.Get("tasks").Errorf("the target %q is named twice", t.Target)
		}
	}
	if f.Loss == "" || f.Network.layerwise() {
		return nil
	}
	at, numeric := f.node.Get("loss"), f.loss().TargetType == onnx.Float
	switch {
	case (f.Loss == train.PositionCrossEntropy.Name) != (target == train.MaskTarget):
		return at.Errorf("the loss of masks is %s, which no other target can have", train.PositionCrossEntropy.Name)
	case target == train.MaskTarget:
		return nil
	case !numeric && target != "":
		return at.Errorf("cross-entropy needs classes, and the target %q is numeric: use %s", target, lossFor(target).Name)
	case numeric && target == "":
		return at.Errorf("%s needs a numeric target: name a factor of the data as target", f.Loss)
	}
	return nil
}

func lossFor(target string) train.Loss {
	switch target {
	case "":
		return train.CrossEntropy
	case train.MaskTarget:
		return train.PositionCrossEntropy
	case train.PresenceTarget:
		return train.BinaryCrossEntropy
	}
	return train.SquaredError
}

func (f *File) loss() train.Loss {
	if f.Loss == "" {
		return lossFor(f.target())
	}
	losses := train.Losses()
	return losses[slices.IndexFunc(losses, func(l train.Loss) bool { return l.Name == f.Loss })]
}

func (f *File) tasks() []train.Task {
	var out []train.Task
	for _, t := range f.Tasks {
		out = append(out, train.Task{Output: cmp.Or(t.Output, t.Target), Loss: lossFor(t.stream()), Weight: t.Weight})
	}
	return out
}

func (f *File) heads(o *datasets) ([]train.Head, error) {
	var out []train.Head
	for _, t := range f.Tasks {
		if t.stream() == "" && o.classes == nil {
			return nil, f.node.Get("tasks").Errorf("the samples have no classes")
		}
		n, err := f.outputs(o, t.stream())
		if err != nil {
			return nil, err
		}
		out = append(out, train.Head{Name: t.Target, Outputs: n})
	}
	return out, nil
}

// maskClasses returns the number of classes of pixels, with the background; 0 if it is not known.
// It is that of the file, else that of the data set src.
func (f *File) maskClasses(src dataset.Source) (int, error) {
	n := f.MaskClasses
	if k := f.Network.Segment; k != nil && k.Classes > 0 {
		if n > 0 && n != k.Classes {
			return 0, f.node.Get("mask-classes").Errorf("mask-classes is %d, and classes of the segmenter %d: leave one out", n, k.Classes)
		}
		n = k.Classes
	}
	return cmp.Or(n, len(dataset.MaskClasses(src))), nil
}

// maskClassesOf returns the number of classes of pixels that the outputs of an ONNX network have;
// 0 if it is not known.
func (f *File) maskClassesOf(n *network) int {
	info := infer.Analyze(n.model)
	of := func(target, output string) int {
		shape := info.Shape(output)
		switch {
		case len(shape) < 2 || shape[1] < 1:
		case target == train.MaskTarget:
			return shape[1]
		case target == train.PresenceTarget:
			return shape[1] + 1
		}
		return 0
	}
	main := n.output
	if outputs := n.model.Outputs(); main == "" && len(outputs) == 1 {
		main = outputs[0].Name
	}
	classes := of(f.target(), main)
	for i, t := range f.tasks() {
		classes = cmp.Or(classes, of(f.Tasks[i].Target, t.Output))
	}
	return classes
}

// checkOutputs returns an error if the network n, from an ONNX file, lacks the output of a task, or
// if a task needs what the data o do not say.
func (f *File) checkOutputs(o *datasets, n *network) error {
	var names []string
	for _, out := range n.model.Outputs() {
		names = append(names, out.Name)
	}
	needsMasks := f.target() == train.PresenceTarget
	for i, t := range f.tasks() {
		if !slices.Contains(names, t.Output) {
			return f.node.Get("tasks").Errorf("the network has no output %q for the target %s, its outputs are %s: set output", t.Output, f.Tasks[i].Target, strings.Join(names, ", "))
		}
		if f.Tasks[i].stream() == "" && o.classes == nil {
			return f.node.Get("tasks").Errorf("the samples have no classes")
		}
		needsMasks = needsMasks || f.Tasks[i].Target == train.PresenceTarget
	}
	o.masks = cmp.Or(o.masks, f.maskClassesOf(n))
	if needsMasks && o.masks == 0 {
		return f.node.Errorf("%s", unknownMaskClasses)
	}
	return nil
}

const unknownMaskClasses = "the number of classes of the masks is not known: set mask-classes to it, with the background"

// outputs returns the number of outputs of the network for a target. It is an error if the target
// needs the number of classes of the masks and that is not known.
func (f *File) outputs(o *datasets, target string) (int, error) {
	switch target {
	case "":
		return len(o.classes), nil
	case train.MaskTarget, train.PresenceTarget:
		switch n := o.masks; {
		case n == 0 && f.Network.Segment != nil:
			return 0, f.node.Get("network").Errorf("the number of classes of the masks is not known: set classes")
		case n == 0:
			return 0, f.node.Get("target").Errorf("%s", unknownMaskClasses)
		case target == train.PresenceTarget:
			return n - 1, nil
		default:
			return n, nil
		}
	}
	return 1, nil
}
