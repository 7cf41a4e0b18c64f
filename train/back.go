package train

import "github.com/noether-ml/noether/ort"

// A moment is all that training could go back to.
type moment struct {
	slots [][]float32
	done  int
}

// moment is where the training stands; nil where no epoch is ever taken back.
func (r *fit) moment() *moment {
	if r.Back == 0 {
		return nil
	}
	m := &moment{done: r.t.done}
	for _, v := range r.t.state[0] {
		m.slots = append(m.slots, append([]float32(nil), ort.Data[float32](v)...))
	}
	return m
}

// rose reports whether an epoch is to be taken back: it came to more than the last epoch that stands.
func (r *fit) rose(e Epoch) bool {
	if r.Back == 0 {
		return false
	}
	for i := len(r.epochs) - 1; i >= 0; i-- {
		if !r.epochs[i].TakenBack {
			return r.judged(e) > r.judged(r.epochs[i])
		}
	}
	return false
}

func (r *fit) judged(e Epoch) float64 {
	if r.BackByLoss {
		return e.Validation
	}
	return e.Objective
}

// takeBack goes back to a moment, and on from there with a smaller rate. The schedule goes on as if the steps had been.
func (r *fit) takeBack(to *moment) {
	for i, v := range to.slots {
		copy(ort.Data[float32](r.t.state[0][i]), v)
	}
	r.t.undone += r.t.done - to.done
	r.t.done = to.done
	r.t.scale *= r.Back
}
