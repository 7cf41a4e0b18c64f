package paired

import (
	"fmt"

	"github.com/noether-ml/noether/measure"
)

// This file pairs samples for the null: the value of a statistic for shuffled pairs, the clean row
// of one sample with the transformed row of another. Pairs are made within a block: up to 32
// consecutive samples of the random order in which a run reads them. Where a measure has an Action,
// the clean row is replaced by tau z, the row moved as the input is. The numbers that are computed
// of a pair are its columns.

// An openPair holds the rows of an incomplete block that are not yet paired for the null.
type openPair struct {
	last        int       // place of the latest sample
	count       int       // samples so far
	label       int       // class of the latest sample
	clean       []float32 // the latest sample's clean row, or tau z
	transformed []float32 // the first sample's transformed row
	// cleanBorrowed and transformedBorrowed report whether the rows are memory that is valid during
	// Update only.
	cleanBorrowed, transformedBorrowed bool
	copied, copiedFirst                []float32 // memory for copies of clean and transformed
}

// copyBorrowed copies rows that are valid during Update only.
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

// shuffle adds a shuffled pair: the clean row of the previous sample of the block, with the
// transformed row of sample i of the batch. It stores the clean row of sample i for the next pair.
// row is that clean row, or tau z with an Action. columns holds the columns of the pair, or is nil
// if they must be computed. shuffle returns the open pair, or nil if the block is complete. It is
// an error if the places of a block do not ascend.
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

// skipSample records that the sample at a place has no columns: the measure leaves it out. It
// returns the open pair of its block, or nil if there is none or the block is complete.
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

// closeIfComplete closes a block after its last sample. It returns the open pair, or nil if it was
// closed.
func (a *accumulator) closeIfComplete(o *openPair, block int) (*openPair, error) {
	if o.last < min((block+1)*a.site.Layout.Block, a.site.Layout.N)-1 {
		return o, nil
	}
	delete(a.open, block)
	a.spare = openPair{copied: o.copied, copiedFirst: o.copiedFirst}
	return nil, a.closeBlock(&a.null, block, o)
}

// closeBlock pairs a block's last clean row with its first transformed row, unless the block has a
// single sample.
func (a *accumulator) closeBlock(t *table, block int, o *openPair) error {
	if o.count < 2 {
		return nil
	}
	return a.addShuffled(t, block, o.label, o.clean, o.transformed)
}

// addShuffled adds the columns of a shuffled pair to a table. label is that of the clean row's
// sample.
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

// addOut adds the columns in a.out, of a shuffled pair of a block, to the sums of a table: those of
// the block's group and of the label's class.
func (a *accumulator) addOut(t *table, block, label int) {
	a.addTo(t, a.site.Layout.Group(block*a.site.Layout.Block), label)
}
