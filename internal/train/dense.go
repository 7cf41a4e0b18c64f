package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/tensor"
)

// A Task is a further loss of a network with several outputs, added to the main loss (Spec.Loss).
type Task struct {
	Output string // of the model
	Loss   Loss
	Weight float64 // factor of the loss in the sum
}

// Targets are the targets of a loss for b samples.
type Targets struct {
	Target  tensor.Tensor // of a loss with TargetType Float, b x ...
	Classes []int         // b classes, of a loss with TargetType Int64
	// Masks are the classes of the positions (row and column of the output) for the loss
	// PositionCrossEntropy, b x h x w; -1: none.
	Masks tensor.Tensor
}

// rows returns the targets of the samples with the given indices. It uses the memory of dst.
func (t Targets) rows(dst Targets, indices []int) Targets {
	if t.Target.Rank() > 0 {
		dst.Target = rows(dst.Target, t.Target, indices)
	}
	if t.Masks.Rank() > 0 {
		dst.Masks = rows(dst.Masks, t.Masks, indices)
	}
	dst.Classes = dst.Classes[:0]
	if t.Classes != nil {
		for _, i := range indices {
			dst.Classes = append(dst.Classes, t.Classes[i])
		}
	}
	return dst
}

func (t Targets) clone() Targets {
	return Targets{t.Target.Clone(), slices.Clone(t.Classes), t.Masks.Clone()}
}

// targetNameOf returns the name of the input with the targets of the main loss for i = 0, else
// of Spec.Tasks[i-1].
func targetNameOf(i int) string {
	if i == 0 {
		return targetName
	}
	return fmt.Sprintf("%s of task %d", targetName, i)
}

func (s *Spec) checkTasks() error {
	for _, task := range s.Tasks {
		switch {
		case task.Loss.write == nil:
			return fmt.Errorf("the task with the output %q has no loss", task.Output)
		case !(task.Weight >= 0) || math.IsInf(task.Weight, 0):
			return fmt.Errorf("the weight of the task with the output %q is %g: it must be at least 0 and finite", task.Output, task.Weight)
		case s.Mixup > 0 || s.Adversarial != nil:
			return fmt.Errorf("several tasks cannot be combined with mixup or adversarial training")
		}
	}
	if s.Loss.perPosition && (s.Mixup > 0 || s.Adversarial != nil) {
		return fmt.Errorf("%s cannot be combined with mixup or adversarial training", s.Loss.Name)
	}
	return nil
}

func (p *program) outputs() []string {
	names := []string{string(p.output)}
	for _, t := range p.spec.Tasks {
		names = append(names, t.Output)
	}
	return names
}

// target declares the input with the targets of a loss on the output y.
func target(b *onnx.Builder, l Loss, name string, y onnx.Value) onnx.Value {
	switch {
	case l.TargetType == onnx.Float:
		return infer.InputLike(b, name, y)
	case l.perPosition:
		return b.Input(name, onnx.Int64, -1, -1, -1)
	}
	return b.Input(name, onnx.Int64, -1)
}

// addTasks adds the weighted losses of the tasks to losses, the main loss of each sample.
func (p *program) addTasks(b *onnx.Builder, losses onnx.Value) onnx.Value {
	for i, t := range p.spec.Tasks {
		y := onnx.Value(t.Output)
		loss := t.Loss.write(b, y, target(b, t.Loss, targetNameOf(i+1), y))
		losses = b.Add(losses, b.Mul(b.Scalar(float32(t.Weight)), loss))
	}
	return losses
}

// positionCrossEntropy writes the loss of each of b samples, given logits y, b x classes x h x w,
// and classes t, b x h x w, -1 for none. The loss is b / n times the sum of -log softmax(y)[class]
// over the sample's positions with a class, where n is the number of such positions in the batch.
// So the mean over the batch is that over its positions, as in PyTorch.
func positionCrossEntropy(b *onnx.Builder, y, t onnx.Value) onnx.Value {
	has, class := labelled(b, t)
	picked := b.Squeeze(b.Op("GatherElements", onnx.Attrs{"axis": 1}, b.LogSoftmax(y, 1), b.Unsqueeze(class, 1)), 1)
	sums := b.Neg(b.ReduceSum(b.Flatten(b.Mul(picked, has), 1), false, 1))
	return b.Div(sums, oneIfZero(b, b.ReduceMean(b.ReduceSum(b.Flatten(has, 1), false, 1), false)))
}

// labelled returns, for each position, 1 if it has a class and 0 if not (has), and its class, or 0.
func labelled(b *onnx.Builder, t onnx.Value) (has, class onnx.Value) {
	has = b.Cast(b.Op("Greater", nil, t, b.Int(-1)), onnx.Float)
	return has, b.Cast(b.Relu(b.Cast(t, onnx.Float)), onnx.Int64)
}

// oneIfZero replaces 0, as a divisor, by 1.
func oneIfZero(b *onnx.Builder, n onnx.Value) onnx.Value {
	return b.Add(n, b.Cast(b.Op("Equal", nil, n, b.Scalar(0)), onnx.Float))
}

// correctPositions returns, for each sample, the fraction of correct predictions among the
// positions that have a class.
func correctPositions(b *onnx.Builder, predicted, t onnx.Value) onnx.Value {
	has, _ := labelled(b, t)
	equal := b.Mul(b.Cast(b.Op("Equal", nil, predicted, t), onnx.Float), has)
	sum := func(v onnx.Value) onnx.Value { return b.ReduceSum(b.Flatten(v, 1), false, 1) }
	return b.Div(sum(equal), oneIfZero(b, sum(has)))
}

// feedMasks copies the classes of the positions of n samples to an input of a graph, which s runs.
// classes is the number of classes of the output; 0 or less: unknown.
func (t *Trainer) feedMasks(s *boundSession, masks tensor.Tensor, n, classes int, input string) error {
	if masks.Rank() != 3 || masks.Shape[0] != n {
		return fmt.Errorf("the masks have shape %v in a batch of %d samples: want %d x h x w", masks.Shape, n, n)
	}
	v, err := s.buffer(input, onnx.Int64, masks.Shape...)
	if err != nil {
		return err
	}
	out := ort.Data[int64](v)
	for i, k := range masks.Data {
		if k < -1 || k != float32(int(k)) {
			return fmt.Errorf("a mask has the class %g: want a whole number, or -1 for a position without a class", k)
		}
		if classes > 0 && int(k) >= classes {
			return fmt.Errorf("a mask has the class %g, and the output has classes 0 to %d", k, classes-1)
		}
		out[i] = int64(k)
	}
	s.bind(input, v)
	return nil
}

// regions counts positions, by class: those predicted as the class, those labelled with it in the
// masks, and those for which both hold.
type regions struct{ both, predicted, labelled []int }

func (r *regions) add(predicted []int64, masks []float32) {
	for i, k := range masks {
		if k < 0 {
			continue
		}
		p, l := int(predicted[i]), int(k)
		for len(r.both) <= max(p, l) {
			r.both, r.predicted, r.labelled = append(r.both, 0), append(r.predicted, 0), append(r.labelled, 0)
		}
		r.predicted[p]++
		r.labelled[l]++
		if p == l {
			r.both[p]++
		}
	}
}

// meanIoU returns the mean over the classes that the masks have of intersection over union; NaN
// without any.
func (r *regions) meanIoU() float64 {
	sum, n := 0.0, 0
	for k, labelled := range r.labelled {
		if labelled > 0 {
			sum += float64(r.both[k]) / float64(labelled+r.predicted[k]-r.both[k])
			n++
		}
	}
	return sum / float64(n)
}

// positionClasses returns the number of classes of an output, -1 if it is not known.
func positionClasses(info *infer.Info, output string) int {
	if shape := info.Shape(output); len(shape) >= 2 {
		return shape[1]
	}
	return -1
}

// moveMask returns the mask of a transformed image: the class of each position, -1 for positions
// that are read from outside the image. read returns the row and the column that position (i, j) of
// the result is read from. Beyond the borders the mask is repeated if wrap is set.
func moveMask(mask tensor.Tensor, read func(i, j int) (row, column float64), wrap bool) tensor.Tensor {
	h, w := mask.Shape[0], mask.Shape[1]
	out := tensor.New(h, w)
	for i := range h {
		for j := range w {
			y, x := read(i, j)
			row, column := int(math.Floor(y+0.5)), int(math.Floor(x+0.5))
			if wrap {
				row, column = ((row%h)+h)%h, ((column%w)+w)%w
			}
			if row >= 0 && row < h && column >= 0 && column < w {
				out.Data[i*w+j] = mask.Data[row*w+column]
			} else {
				out.Data[i*w+j] = -1
			}
		}
	}
	return out
}

// presence returns 1 or 0 for each class of positions but 0, the background: whether a mask has it.
func presence(mask tensor.Tensor, classes int) []float32 {
	out := make([]float32, max(0, classes-1))
	for k := range out {
		if slices.Contains(mask.Data, float32(k+1)) {
			out[k] = 1
		}
	}
	return out
}
