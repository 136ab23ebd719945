# No-ops: compiled code is protected by the GIL; gil_lock.py has the contract.


cpdef inline void enter(object lock) noexcept:
    pass


cpdef inline void leave(object lock) noexcept:
    pass
