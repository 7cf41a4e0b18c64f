// Package supervise runs a program in a child process, so that a model on which the inference
// engine crashes does not take the work on other models with it.
//
// An invalid memory access or a trapped division in native code ends a process, and Go cannot
// recover from it. A program therefore calls Run first thing in main. Run starts the program again
// as a child, with the same arguments, files and terminal, and waits for it. In the child, Run
// returns a Worker at once. The Worker notes in memory that both processes share which models the
// engine works on. If the child crashes while it works on a model, the parent starts another child,
// to which the model's Crashed returns the cause. A command that resumes its work then loses only
// that of the crashed model.
//
// Only a program whose main function calls Run is run twice: a library cannot know what starting
// its host again would do. The cost is the start of a second process, some 10 ms, and two writes to
// shared memory for each run of the engine.
package supervise
