package recipe

import (
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
)

// classesTarget names the classes as the target of a task. The tasks of a training file are what a
// segmenter learns besides the masks, the classes of pixels.
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
	case len(f.Tasks) > 0 && f.Network.Segment == nil:
		return f.node.Get("tasks").Errorf("several tasks need a segmenter")
	case target == train.MaskTarget && f.Adversarial != nil:
		return f.node.Get("adversarial").Errorf("masks cannot be learned on adversarial examples")
	}
	for i, t := range f.Tasks {
		switch {
		case t.Target == train.MaskTarget:
			return f.node.Get("tasks").Errorf("the mask is the target of the segmenter itself")
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
		out = append(out, train.Task{Output: t.Target, Loss: lossFor(t.stream()), Weight: t.Weight})
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
func (f *File) maskClasses(src dataset.Source) int {
	if k := f.Network.Segment; k != nil && k.Classes > 0 {
		return k.Classes
	}
	return len(dataset.MaskClasses(src))
}

// outputs returns the number of outputs of the network for a target. It is an error if the target
// needs the number of classes of the masks and that is not known.
func (f *File) outputs(o *datasets, target string) (int, error) {
	switch target {
	case "":
		return len(o.classes), nil
	case train.MaskTarget, train.PresenceTarget:
		n := f.maskClasses(o.train)
		switch {
		case n == 0 && f.Network.Segment != nil:
			return 0, f.node.Get("network").Errorf("the number of classes of the masks is not known: set classes")
		case n == 0:
			return 0, f.node.Get("target").Errorf("the data do not name the classes of masks: presence is for shapes with figures or texture, and for coco with masks")
		case target == train.PresenceTarget:
			return n - 1, nil
		}
		return n, nil
	}
	return 1, nil
}
