package paired

import (
	"fmt"

	"github.com/noether-ml/noether/measure"
)

// This file pairs the samples of a block for the null. With an Action, tau z replaces the clean
// row.

type openPair struct {
	last        int       // place of the latest sample
	count       int       // samples so far
	label       int       // class of the latest sample
	clean       []float32 // the latest sample's clean row, or tau z
	transformed []float32 // the first sample's transformed row
	// the rows are memory that is valid during Update only
	cleanBorrowed, transformedBorrowed bool
	copied, copiedFirst                []float32 // memory for copies of clean and transformed
}

func (o *openPair) copyBorrowed() {
	if o.cleanBorrowed {
		o.copied = append(o.copied[:0], o.clean...)
		o.clean, o.cleanBorrowed = o.copied, false
	}
	if o.transformedBorrowed {
		o.copiedFirst = append(o.copiedFirst[:0], o.transformed...)
		o.transformed, o.transformedBorrowed = o.copiedFirst, false
	}
}

// shuffle adds the pair of the block's previous clean row and the transformed row of sample i, and
// stores the clean row of i, row (tau z with an Action). columns is nil if they must be computed.
// It returns the open pair, nil if the block is complete. Places must ascend.
func (a *accumulator) shuffle(b *measure.Batch, i int, row []float32, columns []float64) (*openPair, error) {
	place := b.Place[i]
	block := place / a.site.Layout.Block
	o := a.open[block]
	if o == nil {
		o = &openPair{transformed: b.Transformed.At(i).Data, transformedBorrowed: true, copied: a.spare.copied, copiedFirst: a.spare.copiedFirst}
		a.open[block], a.spare = o, openPair{}
	} else {
		if place <= o.last {
			return nil, fmt.Errorf("place %d of block %d comes after place %d", place, block, o.last)
		}
		if columns != nil {
			copy(a.out, columns)
			a.addOut(&a.null, block, o.label)
		} else if err := a.addShuffled(&a.null, block, o.label, o.clean, b.Transformed.At(i).Data); err != nil {
			return nil, err
		}
	}
	o.count++
	o.last, o.label, o.clean, o.cleanBorrowed = place, b.Label[i], row, true
	return a.closeIfComplete(o, block)
}

// skipSample records a sample without columns. It returns the open pair of its block, if any.
func (a *accumulator) skipSample(place int) (*openPair, error) {
	block := place / a.site.Layout.Block
	o := a.open[block]
	if o == nil {
		return nil, nil
	}
	if place <= o.last {
		return nil, fmt.Errorf("place %d of block %d comes after place %d", place, block, o.last)
	}
	o.last = place
	return a.closeIfComplete(o, block)
}

// closeIfComplete closes a complete block and returns the open pair, nil if closed.
func (a *accumulator) closeIfComplete(o *openPair, block int) (*openPair, error) {
	if o.last < min((block+1)*a.site.Layout.Block, a.site.Layout.N)-1 {
		return o, nil
	}
	delete(a.open, block)
	a.spare = openPair{copied: o.copied, copiedFirst: o.copiedFirst}
	return nil, a.closeBlock(&a.null, block, o)
}

// closeBlock pairs a block's last clean row with its first transformed row, unless it has one
// sample.
func (a *accumulator) closeBlock(t *table, block int, o *openPair) error {
	if o.count < 2 {
		return nil
	}
	return a.addShuffled(t, block, o.label, o.clean, o.transformed)
}

// addShuffled adds a shuffled pair's columns; label is that of the clean row.
func (a *accumulator) addShuffled(t *table, block, label int, clean, transformed []float32) error {
	var err error
	if a.action != nil {
		err = a.action.Pair(a.out, clean, transformed)
	} else {
		err = a.spec.Pair(a.out, label, clean, transformed)
	}
	if err != nil {
		return err
	}
	a.addOut(t, block, label)
	return nil
}

// addOut adds the columns in a.out to the sums of the block's group and the label's class.
func (a *accumulator) addOut(t *table, block, label int) {
	a.addTo(t, a.site.Layout.Group(block*a.site.Layout.Block), label)
}
