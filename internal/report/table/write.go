package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
)

// missing is written for a missing score.
const missing = "–"

// text returns the value with its 95 % confidence interval, or the mark of a missing one.
func (c Cell) text() string {
	switch {
	case c.Value == "":
		return missing
	case c.Interval == "":
		return c.Value
	}
	return c.Value + " " + c.Interval
}

// heading returns the heading of a column in one line.
func (c Column) heading() string {
	if c.Transform == "" {
		return c.Statistic.Title
	}
	return c.Transform + ": " + c.Statistic.Title
}

// Markdown writes the table in GitHub's Markdown.
func (t *Table) Markdown(w io.Writer) error {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	var head, rule []string
	for _, l := range t.Labels { // headings of the columns that identify a line, such as the model
		head, rule = append(head, l), append(rule, "---")
	}
	for _, c := range t.Columns {
		head, rule = append(head, markdown(c.heading())), append(rule, "---:")
	}
	line(head)
	line(rule)
	for _, l := range t.Lines {
		var cells []string
		for _, name := range l.Labels {
			cells = append(cells, markdown(name))
		}
		for _, c := range l.Cells {
			cells = append(cells, c.text())
		}
		line(cells)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown escapes names for a table cell.
var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`).Replace

// LaTeX writes the table as a tabular with booktabs rules. Each transformation spans the columns of
// its statistics.
func (t *Table) LaTeX(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%% \\usepackage{booktabs}\n\\begin{tabular}{%s%s}\n\\toprule\n", strings.Repeat("l", len(t.Labels)), strings.Repeat("r", len(t.Columns)))
	b.WriteString(t.spans())
	var head []string
	for _, l := range t.Labels {
		head = append(head, latex(l))
	}
	for _, c := range t.Columns {
		head = append(head, latex(c.Statistic.Title))
	}
	fmt.Fprintf(&b, "%s \\\\\n\\midrule\n", strings.Join(head, " & "))
	for _, l := range t.Lines {
		var cells []string
		for _, name := range l.Labels {
			cells = append(cells, latex(name))
		}
		for _, c := range l.Cells {
			cells = append(cells, c.latex())
		}
		fmt.Fprintf(&b, "%s \\\\\n", strings.Join(cells, " & "))
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// spans returns the header line of transformations with rules, or "" if there are none.
func (t *Table) spans() string {
	var cells, rules []string
	hasNames := false
	for i := 0; i < len(t.Columns); {
		j := i
		for j < len(t.Columns) && t.Columns[j].Transform == t.Columns[i].Transform {
			j++
		}
		name := t.Columns[i].Transform
		cells = append(cells, fmt.Sprintf("\\multicolumn{%d}{c}{%s}", j-i, latex(name)))
		if name != "" {
			hasNames = true
			rules = append(rules, fmt.Sprintf("\\cmidrule(lr){%d-%d}", len(t.Labels)+i+1, len(t.Labels)+j))
		}
		i = j
	}
	if !hasNames {
		return ""
	}
	return strings.Repeat("& ", len(t.Labels)) + strings.Join(cells, " & ") + " \\\\\n" + strings.Join(rules, " ") + "\n"
}

// latex returns the text of the cell in LaTeX, with the interval in small print.
func (c Cell) latex() string {
	if c.Value == "" {
		return "--"
	}
	value := number(c.Value)
	if c.Interval == "" {
		return value
	}
	return value + " {\\footnotesize " + number(c.Interval) + "}"
}

// number typesets the minus sign, and the dash of a missing number.
func number(text string) string {
	return strings.NewReplacer("-", "$-$", missing, "--").Replace(text)
}

var latex = strings.NewReplacer(`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`,
	"~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`, ">", `\textgreater{}`, "→", `$\rightarrow$`, "–", "--").Replace

// CSV writes the table with value and interval in one cell, for people; scores.WriteCSV writes
// rows, one score each, for programs.
func (t *Table) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := append([]string(nil), t.Labels...)
	for _, column := range t.Columns {
		head = append(head, column.heading())
	}
	c.Write(head)
	for _, l := range t.Lines {
		cells := append([]string(nil), l.Labels...)
		for _, v := range l.Cells {
			cells = append(cells, v.text())
		}
		c.Write(cells)
	}
	c.Flush()
	return c.Error()
}
