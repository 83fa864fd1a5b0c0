package lab

import "syscall"

// dieWithParent asks the kernel to end the program when we are gone, however
// that happens. SIGQUIT makes a PostgreSQL server end its children and leave.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
